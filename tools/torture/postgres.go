package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/jackc/pgx/v5"

	"github.com/porteira/porteira/tools/rig"
)

// databaseName is the gateways' database.
const databaseName = "porteira"

// newPostgres lays out a server, and a wire to it for each gateway.
func newPostgres(o settings, folder string, take func() string) (*database, error) {
	binaries, err := filepath.Glob("/usr/lib/postgresql/*/bin/postgres")
	if err != nil || len(binaries) == 0 {
		return nil, errors.Join(errors.New("no PostgreSQL here: install Debian's postgresql package"), err)
	}
	slices.Sort(binaries)
	program := binaries[len(binaries)-1]
	// A folder of its own: it belongs to another account, which must reach it.
	home, err := os.MkdirTemp("", "porteira-torture-pg-")
	if err != nil {
		return nil, err
	}
	account, err := rig.Account(home)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(home))
	}
	address := take()
	d := &database{home: home, direct: urlOf(address, databaseName)}
	_, port, _ := strings.Cut(address, ":")
	d.server = &process{
		kind: kindServer, label: "postgres", account: account, needs: d,
		ready: func(ctx context.Context) bool { return d.exec(ctx, "SELECT 1") == nil },
		args: []string{
			program, "-D", filepath.Join(home, "data"), "-c", "listen_addresses=127.0.0.1", "-c", "port=" + port, "-c", "unix_socket_directories=" + home,
			// What is acknowledged must be on disk, as in production.
			"-c", "fsync=on", "-c", "synchronous_commit=on", "-c", "full_page_writes=on", "-c", "max_connections=200",
		},
	}
	for range o.gatewayCount {
		w := &wire{listen: take(), server: address}
		d.wires = append(d.wires, w)
		d.through = append(d.through, urlOf(w.listen, databaseName))
	}
	return d, nil
}

func urlOf(address, name string) string {
	return "postgres://postgres@" + address + "/" + name + "?sslmode=disable"
}

// openPostgres makes the server's folder and the database in it.
func (d *database) openPostgres(ctx context.Context) error {
	initdb := exec.CommandContext(ctx, filepath.Join(filepath.Dir(d.server.args[0]), "initdb"),
		"--pgdata="+filepath.Join(d.home, "data"), "--username=postgres", "--auth=trust", "--encoding=UTF8", "--no-locale", "--no-sync")
	initdb.Env, initdb.Dir = []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C"}, d.home
	initdb.SysProcAttr = &syscall.SysProcAttr{Credential: d.server.account}
	if out, err := initdb.CombinedOutput(); err != nil {
		return fmt.Errorf("initdb: %w\n%s", err, out)
	}
	for _, w := range d.wires {
		if err := w.start(ctx); err != nil {
			return err
		}
	}
	d.server.onEnd = func(end) {}
	if err := d.server.start(""); err != nil {
		return err
	}
	d.server.serves()
	admin := &database{direct: strings.Replace(d.direct, "/"+databaseName+"?", "/postgres?", 1)}
	err := admin.exec(ctx, "CREATE DATABASE "+databaseName)
	for try := 0; err != nil && try < readTries*5 && wait(ctx, readyLook*5); try++ {
		err = admin.exec(ctx, "CREATE DATABASE "+databaseName)
	}
	return err
}

// exec runs one statement past the wires.
func (d *database) exec(ctx context.Context, text string) error {
	ctx, cancel := clock.WithTimeout(ctx, pushTimeout)
	defer cancel()
	conn, err := pgx.Connect(ctx, d.direct)
	if err != nil {
		return err
	}
	_, err = conn.Exec(ctx, text)
	return errors.Join(err, conn.Close(ctx))
}

// close ends the wires and removes the server's folder.
func (d *database) close() error {
	if d.home == "" {
		return nil
	}
	for _, w := range d.wires {
		w.close()
	}
	return os.RemoveAll(d.home)
}

// killServer kills the server, one of its parts, or the whole in its own way
// (pg_ctl stop --mode=immediate is SIGQUIT).
func (o *ordeal) killServer(p *process) {
	o.database.disturb()
	defer o.database.disturb() // from when it is down
	switch o.tormentor.below(4) {
	case 0:
		if p.kill() {
			o.figures.add("kills", p.kind, 1)
		}
	case 1:
		if p.signal(syscall.SIGQUIT) {
			<-p.end()
			o.figures.add("kills", p.kind+" by immediate stop", 1)
		}
	case 2:
		o.killBackend(p, syscall.SIGKILL, backendKilled)
	default:
		o.killBackend(p, syscall.SIGTERM, sessionEnded)
	}
}

// Parts of the server, as figures name them when they are killed.
const (
	backendKilled = "database backend"
	sessionEnded  = "database session ended"
)

// killBackend signals one of the server's processes that serve a gateway.
func (o *ordeal) killBackend(p *process, s syscall.Signal, name string) {
	backends := childrenOf(p.pid(), "127.0.0.1(")
	if len(backends) == 0 {
		return
	}
	if syscall.Kill(pick(o.tormentor, backends), s) == nil {
		o.figures.add("kills", name, 1)
	}
}

// childrenOf lists the children of a process whose title contains a text.
func childrenOf(parent int, title string) (list []int) {
	folders, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return nil
	}
	for _, folder := range folders {
		stat, err1 := os.ReadFile(filepath.Join(folder, "stat"))
		line, err2 := os.ReadFile(filepath.Join(folder, "cmdline"))
		if err1 != nil || err2 != nil || !strings.Contains(string(line), title) {
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
