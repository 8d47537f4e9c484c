package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

// database is the gateways' SQLite file or PostgreSQL server.
type database struct {
	direct  string   // its name for commands that nothing disturbs
	through []string // its name for each gateway
	server  *process // nil for SQLite
	proxies []*proxy // to the server, one for each gateway; none if connections are not cut
	home    string   // folder of the server

	broken atomic.Int64 // when it was last disturbed, by the monotonic clock
}

// disturbance is for how long a disturbed database excuses a gateway that does not
// start.
const disturbance = 15 * time.Second

// disturb records that the database, or a connection to it, is being broken.
func (d *database) disturb() { d.broken.Store(int64(clock.Monotonic())) }

func (d *database) disturbed() bool {
	at := time.Duration(d.broken.Load())
	return d.server != nil && at > 0 && clock.Monotonic()-at < disturbance
}

// databaseName is the gateways' database on the server.
const databaseName = "porteira"

// postgresBinaries is the folder of the newest PostgreSQL of this machine.
func postgresBinaries() (string, error) {
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/postgres")
	if err != nil || len(found) == 0 {
		return "", errors.Join(fmt.Errorf("%w: no PostgreSQL: install Debian's postgresql package, or take -engine sqlite", errUnfit), err)
	}
	slices.Sort(found)
	return filepath.Dir(found[len(found)-1]), nil
}

// newPostgres lays out a server, and a proxy to it for each gateway.
func newPostgres(l layout, take func() string) (*database, error) {
	binaries, err := postgresBinaries()
	if err != nil {
		return nil, err
	}
	home := filepath.Join(l.data, "postgres")
	if err := os.Mkdir(home, 0o700); err != nil {
		return nil, err
	}
	user, err := account(home)
	if err != nil {
		return nil, err
	}
	address := take()
	d := &database{home: home, direct: urlOf(address, databaseName)}
	_, port, _ := strings.Cut(address, ":")
	d.server = &process{
		kind: kindServer, label: "postgres", account: user, needs: d,
		ready: func(ctx context.Context) bool {
			ctx, cancel := clock.WithTimeout(ctx, readyMax)
			defer cancel()
			return d.exec(ctx, databaseName, "SELECT 1") == nil
		},
		args: []string{
			filepath.Join(binaries, "postgres"), "-D", filepath.Join(home, "data"),
			"-c", "listen_addresses=127.0.0.1", "-c", "port=" + port, "-c", "unix_socket_directories=",
			// An acknowledged order must be on disk, as in production.
			"-c", "fsync=on", "-c", "synchronous_commit=on", "-c", "full_page_writes=on", "-c", "max_connections=200",
		},
	}
	for range l.gateways {
		if !l.cuttable {
			d.through = append(d.through, d.direct)
			continue
		}
		p := &proxy{listen: take(), server: address}
		d.proxies = append(d.proxies, p)
		d.through = append(d.through, urlOf(p.listen, databaseName))
	}
	return d, nil
}

func urlOf(address, name string) string {
	return "postgres://postgres@" + address + "/" + name + "?sslmode=disable"
}

// open creates the server's folder and the gateways' database, and leaves the server
// running. With SQLite there is nothing to do.
func (d *database) open(ctx context.Context) error {
	if d.server == nil {
		return nil
	}
	out, err := d.tool(ctx, "initdb", "--pgdata="+filepath.Join(d.home, "data"), "--username=postgres", "--auth=trust",
		"--encoding=UTF8", "--no-locale", "--no-sync")
	if err != nil {
		return fmt.Errorf("initdb: %w\n%s", err, out)
	}
	for _, p := range d.proxies {
		if err := p.start(ctx); err != nil {
			return err
		}
	}
	d.server.onEnd = func(end) {}
	if err := d.server.start("", 0); err != nil {
		return err
	}
	const create = "CREATE DATABASE " + databaseName
	err = d.exec(ctx, "postgres", create)
	for try := 0; err != nil && try < readTries*5 && wait(ctx, readyLook*5); try++ {
		err = d.exec(ctx, "postgres", create)
	}
	d.server.serves()
	return err
}

// tool runs one of PostgreSQL's programs as the server's account.
func (d *database) tool(ctx context.Context, name string, arguments ...string) (string, error) {
	cmd := exec.CommandContext(ctx, filepath.Join(filepath.Dir(d.server.args[0]), name), arguments...)
	cmd.Env, cmd.Dir = append(environ(), "LC_ALL=C"), "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: d.server.account}
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// logged is the length of the server's log, in bytes; 0 with SQLite.
func (d *database) logged() int { return len(d.readLog()) }

func (d *database) readLog() []byte {
	if d == nil || d.server == nil {
		return nil
	}
	text, err := os.ReadFile(d.server.log())
	if err != nil {
		return nil
	}
	return text
}

// panickedSince reports whether the server has stopped, after that length of its log, because the
// disk had no space for another segment of its write-ahead log: it refuses reads until it has
// recovered. PostgreSQL's manual, "Disk Full Failure", says so.
func (d *database) panickedSince(from int) bool {
	text := d.readLog()
	return from <= len(text) && bytes.Contains(text[from:], []byte("PANIC:  could not write to file \"pg_wal/"))
}

// exec runs one statement, past the proxies.
func (d *database) exec(ctx context.Context, name, text string) error {
	ctx, cancel := clock.WithTimeout(ctx, statementMax)
	defer cancel()
	conn, err := pgx.Connect(ctx, strings.Replace(d.direct, "/"+databaseName+"?", "/"+name+"?", 1))
	if err != nil {
		return err
	}
	_, err = conn.Exec(ctx, text)
	return errors.Join(err, conn.Close(ctx))
}

const (
	statementMax = 10 * time.Second
	readyMax     = 2 * time.Second
)

// close ends the proxies.
func (d *database) close() {
	for _, p := range d.proxies {
		p.close()
	}
}

// childrenOf lists the children of a process whose command line contains a text.
func childrenOf(parent int, text string) (list []int) {
	folders, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return nil
	}
	for _, folder := range folders {
		stat, err1 := os.ReadFile(filepath.Join(folder, "stat"))
		line, err2 := os.ReadFile(filepath.Join(folder, "cmdline"))
		if err1 != nil || err2 != nil || !strings.Contains(string(line), text) {
			continue // it has ended meanwhile, or is another
		}
		_, rest, _ := strings.Cut(string(stat), ") ")
		fields := strings.Fields(rest) // state, parent, …
		pid, err := strconv.Atoi(filepath.Base(folder))
		if err == nil && len(fields) > 1 && fields[1] == strconv.Itoa(parent) {
			list = append(list, pid)
		}
	}
	return list
}

// killInFolder kills the processes that work in a folder, as the server's backends
// do, which are no members of its process group.
func killInFolder(folder string) {
	links, err := filepath.Glob("/proc/[0-9]*/cwd")
	if err != nil {
		return
	}
	for _, link := range links {
		at, err1 := os.Readlink(link)
		pid, err2 := strconv.Atoi(filepath.Base(filepath.Dir(link)))
		if err1 == nil && err2 == nil && strings.HasPrefix(at, folder+"/") {
			_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended
		}
	}
}
