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
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/porteira/porteira/tools/rig"
)

// databaseName is the gateway's database on the server.
const databaseName = "porteira"

// server is a PostgreSQL server whose folder is on the disk that fails.
type server struct {
	program

	binaries string
	host     string
	port     string
	url      string // of the gateway's database
}

func newServer(t *trial) (*server, error) {
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/postgres")
	if err != nil || len(found) == 0 {
		return nil, fmt.Errorf("%w: it needs PostgreSQL: install Debian's postgresql package, or take -engine sqlite", errUnfit)
	}
	slices.Sort(found)
	listen, err := address(t.random)
	if err != nil {
		return nil, err
	}
	s := &server{binaries: filepath.Dir(found[len(found)-1])}
	s.host, s.port, _ = strings.Cut(listen, ":")
	s.url = "postgres://postgres@" + listen + "/" + databaseName + "?sslmode=disable"
	if s.account, err = rig.Account(t.point); err != nil {
		return nil, fmt.Errorf("%w: %w", errUnfit, err)
	}
	home := filepath.Join(t.point, "postgres")
	if out, err := s.tool(t.ctx, "initdb", "--pgdata="+home, "--username=postgres", "--auth=trust", "--encoding=UTF8", "--no-locale"); err != nil {
		return nil, fmt.Errorf("initdb: %w\n%s", err, out)
	}
	s.log = filepath.Join(t.folder, "postgres.log")
	s.args = []string{
		filepath.Join(s.binaries, "postgres"), "-D", home, "-c", "listen_addresses=" + s.host, "-c", "port=" + s.port, "-c", "unix_socket_directories=",
		// What is acknowledged must be on disk, as in production.
		"-c", "fsync=on", "-c", "synchronous_commit=on", "-c", "full_page_writes=on",
	}
	if err := s.serve(t.ctx); err != nil {
		return s, err
	}
	err = s.exec(t.ctx, "postgres", "CREATE DATABASE "+databaseName)
	// The server is not what is tried: it was set up long ago.
	t.disk.SyncAll()
	return s, err
}

// kill kills the server with its backends, which are no members of its group:
// each has its folder as its own.
func (s *server) kill(folder string) {
	s.signal(syscall.SIGKILL)
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

// tool runs one of PostgreSQL's programs.
func (s *server) tool(ctx context.Context, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, filepath.Join(s.binaries, name), args...)
	cmd.Env, cmd.Dir = append(rig.Environ(), "LC_ALL=C"), "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: s.account}
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// serve starts the server and waits until it takes connections.
func (s *server) serve(ctx context.Context) error {
	if err := s.start(); err != nil {
		return err
	}
	return s.await(ctx)
}

// await waits until the server takes connections, as after a recovery.
func (s *server) await(ctx context.Context) error {
	var err error
	for range 600 {
		if err = s.exec(ctx, "postgres", "SELECT 1"); err == nil {
			return nil
		}
		if s.gone() {
			return fmt.Errorf("PostgreSQL has ended: %s", s.lastWords())
		}
		if !wait(ctx, 100*time.Millisecond) {
			return context.Cause(ctx)
		}
	}
	return fmt.Errorf("PostgreSQL does not serve: %w\n%s", err, s.lastWords())
}

// exec runs one statement.
func (s *server) exec(ctx context.Context, database, text string) error {
	ctx, cancel := clock.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	conn, err := pgx.Connect(ctx, strings.Replace(s.url, "/"+databaseName+"?", "/"+database+"?", 1))
	if err != nil {
		return err
	}
	_, err = conn.Exec(ctx, text)
	return errors.Join(err, conn.Close(ctx))
}
