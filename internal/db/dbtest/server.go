package dbtest

import (
	"bufio"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

const (
	// Linux gives ports from 32768 on to outgoing connections, so a server that
	// restarts on such a port may find it taken.
	portFirst, portLast = 20000, 32767

	// startAttempts is how many ports are tried before giving up.
	startAttempts = 10
)

// ErrNoPostgres means that this machine has no PostgreSQL to start.
var ErrNoPostgres = errors.New("no PostgreSQL here: install Debian's postgresql package, or set PORTEIRA_TEST_POSTGRES_URL")

// supervisor is the shell script that owns a server's processes and folder.
//
//go:embed server.sh
var supervisor string

// Server is a PostgreSQL server that belongs to this process. When the process
// ends, in any way, the supervisor sees its input close, stops the server and
// removes its folder.
type Server struct {
	cluster *cluster
	folder  string
	process *exec.Cmd
	control io.WriteCloser // commands for the supervisor, one per line
	answers *bufio.Reader  // "ok" or "failed" for each
}

// PostgresServer starts a server for one test, which may crash it and start it
// again. Tests that only need a database use Postgres or PostgresFrom, which
// share one server and so cost much less. Settings such as "fsync=off" override
// the safe defaults.
func PostgresServer(t testing.TB, settings ...string) *Server {
	t.Helper()
	server, err := StartServer(settings...)
	if err != nil {
		unavailable(t, err)
	}
	t.Cleanup(server.Close)
	return server
}

// URL is the address of the maintenance database.
func (s *Server) URL() string { return s.cluster.admin }

// Database returns the URL of a new, empty UTF-8 database. It lasts as long as the server.
func (s *Server) Database(t testing.TB) string {
	t.Helper()
	database, err := s.cluster.createEmpty()
	if err != nil {
		t.Fatalf("create database: %v", err)
	}
	return s.cluster.url(database)
}

// Crash simulates a crash of the server: connections break, nothing is flushed,
// and the next start recovers from the write-ahead log.
func (s *Server) Crash(t testing.TB) {
	t.Helper()
	if err := s.command("crash"); err != nil {
		t.Fatal(err)
	}
}

// Start starts the server again after Crash, at the same address, and returns
// once it accepts connections.
func (s *Server) Start(t testing.TB) {
	t.Helper()
	if err := s.command("start"); err != nil {
		t.Fatal(err)
	}
}

// Standby makes the crashed server a standby without a primary: after the next Start it
// answers reads only.
func (s *Server) Standby(t testing.TB) {
	t.Helper()
	if err := s.command("standby"); err != nil {
		t.Fatal(err)
	}
}

// StartServer starts a server for a program that is not a test, with the settings of
// PostgresServer. The caller should close it; it also ends with its program. The attempts
// are needed because another process may take the free port first.
func StartServer(settings ...string) (*Server, error) {
	binaries, err := findBinaries()
	if err != nil {
		return nil, err
	}
	port := portFirst + os.Getpid()*7%(portLast-portFirst)
	for range startAttempts {
		if port, err = freePort(port + 1); err != nil {
			return nil, err
		}
		var server *Server
		if server, err = launch(binaries, port, settings); err == nil {
			return server, nil
		}
	}
	return nil, err
}

// launch starts the supervisor, and through it the server.
func launch(binaries string, port int, settings []string) (*Server, error) {
	folder, err := os.MkdirTemp("", "porteira-postgres-")
	if err != nil {
		return nil, fmt.Errorf("folder for PostgreSQL: %w", err)
	}
	extra := ""
	for _, setting := range settings {
		extra += " -c " + setting
	}
	cmd := exec.Command("/bin/sh", "-c", supervisor, "supervisor", binaries, strconv.Itoa(port), extra)
	cmd.Dir = folder
	// Nothing is inherited: a developer's PGDATA or PGPORT would interfere.
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C"}
	// Its own process group, so that an interrupt at the terminal reaches only the
	// tests.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if os.Getuid() == 0 {
		if err := chownTo(folder, cmd.SysProcAttr); err != nil {
			return nil, errors.Join(err, os.RemoveAll(folder))
		}
	}
	control, err1 := cmd.StdinPipe()
	answers, err2 := cmd.StdoutPipe()
	if err := errors.Join(err1, err2, cmd.Start()); err != nil {
		return nil, errors.Join(fmt.Errorf("start PostgreSQL: %w", err), os.RemoveAll(folder))
	}
	server := &Server{
		cluster: newCluster(fmt.Sprintf("postgres://postgres@127.0.0.1:%d/postgres?sslmode=disable", port)),
		folder:  folder,
		process: cmd,
		control: control,
		answers: bufio.NewReader(answers),
	}
	if err := errors.Join(server.command("init"), server.command("start")); err != nil {
		server.Close()
		return nil, err
	}
	return server, nil
}

// command runs one command of the supervisor, and waits until it is done.
func (s *Server) command(name string) error {
	_, err := io.WriteString(s.control, name+"\n")
	if err != nil {
		return fmt.Errorf("PostgreSQL %s: %w", name, err)
	}
	answer, err := s.answers.ReadString('\n')
	if err != nil {
		return fmt.Errorf("PostgreSQL %s: supervisor: %w", name, err)
	}
	if answer != "ok\n" {
		// The log goes with the folder, so it is part of the error.
		log, err := os.ReadFile(filepath.Join(s.folder, "log"))
		return errors.Join(fmt.Errorf("PostgreSQL %s failed; its log:\n%s", name, log), err)
	}
	return nil
}

// Close stops the server and waits until its folder is removed. The exit status
// is of no use to a test.
func (s *Server) Close() {
	_ = s.control.Close()
	_ = s.process.Wait()
}

// chownTo makes a plain user the owner of the folder and of the process, as
// PostgreSQL refuses to run as root.
func chownTo(folder string, attr *syscall.SysProcAttr) error {
	var failures []error
	for _, name := range []string{"postgres", "nobody"} {
		account, err := user.Lookup(name)
		if err != nil {
			failures = append(failures, err)
			continue
		}
		uid, err1 := strconv.ParseUint(account.Uid, 10, 32)
		gid, err2 := strconv.ParseUint(account.Gid, 10, 32)
		if err := errors.Join(err1, err2, os.Chown(folder, int(uid), int(gid))); err != nil {
			return fmt.Errorf("hand the folder to %s: %w", name, err)
		}
		attr.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
		return nil
	}
	return fmt.Errorf("no user to run PostgreSQL as: %w", errors.Join(failures...))
}

// findBinaries returns the folder with initdb and pg_ctl: the newest version
// that Debian installed, else that of the search path.
func findBinaries() (string, error) {
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/pg_ctl")
	if err == nil && len(found) > 0 {
		newest := slices.MaxFunc(found, func(a, b string) int { return majorVersion(a) - majorVersion(b) })
		return filepath.Dir(newest), nil
	}
	path, err := exec.LookPath("pg_ctl")
	if err != nil {
		return "", ErrNoPostgres
	}
	// The entry may be a link; initdb is next to its target.
	if path, err = filepath.EvalSymlinks(path); err != nil {
		return "", fmt.Errorf("find PostgreSQL: %w", err)
	}
	return filepath.Dir(path), nil
}

// majorVersion reads the 15 of /usr/lib/postgresql/15/bin/pg_ctl, or 0.
func majorVersion(path string) int {
	version, _ := strconv.Atoi(strings.Split(path, "/")[4])
	return version
}

// freePort returns the first port at or after the given one that nobody listens on and
// that no other process has reserved.
func freePort(port int) (int, error) {
	for ; port <= portLast; port++ {
		if !reserve(port) {
			continue
		}
		listener, err := net.Listen("tcp4", fmt.Sprintf("127.0.0.1:%d", port))
		if err == nil {
			return port, listener.Close()
		}
	}
	return 0, fmt.Errorf("no free port up to %d for PostgreSQL", portLast)
}
