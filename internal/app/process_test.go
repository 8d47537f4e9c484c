package app_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/app"
	"github.com/porteira/porteira/internal/app/apptest"
	"github.com/porteira/porteira/internal/db/dbtest"
)

// binaryFolder is the folder of the real program; TestMain removes it.
var binaryFolder string

// binary is the real program, built once for all tests that kill it.
var binary = sync.OnceValues(func() (string, error) {
	var err error
	if binaryFolder, err = os.MkdirTemp("", "porteira-test-"); err != nil {
		return "", err
	}
	path := filepath.Join(binaryFolder, "porteira")
	out, err := exec.Command("go", "build", "-o", path, "../../cmd/porteira").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build: %w\n%s", err, out)
	}
	return path, nil
})

// program is the real binary, as an operator runs it: it can be killed.
type program struct {
	t       *testing.T
	args    []string
	environ []string
	base    string // address, the same after each start
	client  *http.Client
	out     io.Writer // of what it prints; may be nil

	mu  sync.Mutex
	cmd *exec.Cmd
	log *apptest.Log
}

// freePort finds an unused port below the ephemeral range: an outgoing connection could
// take one of that range while the program is down.
func freePort(t *testing.T) string {
	t.Helper()
	for {
		l, err := net.Listen("tcp", fmt.Sprint("127.0.0.1:", 10_000+rand.IntN(20_000)))
		if err == nil {
			_ = l.Close()
			return l.Addr().String()
		}
	}
}

// newProgram prepares a command with --listen at a fixed address.
func newProgram(t *testing.T, environ []string, args ...string) *program {
	t.Helper()
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	address := freePort(t)
	p := &program{
		t: t, args: append([]string{path}, append(args, "--listen", address)...), environ: environ, base: "http://" + address,
		client: &http.Client{Timeout: 2 * time.Minute, Transport: &http.Transport{MaxIdleConnsPerHost: 64}}, log: &apptest.Log{},
	}
	t.Cleanup(func() {
		p.kill()
		if t.Failed() {
			t.Logf("%s at %s logged:\n%s", args[0], address, p.log)
		}
	})
	return p
}

// ambient is the environment of the tests without the settings of a gateway.
func ambient() []string {
	return slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "PORTEIRA_") })
}

// start runs the program and returns how long it took to answer.
func (p *program) start() time.Duration {
	p.t.Helper()
	began := time.Now()
	p.mu.Lock()
	p.cmd = exec.Command(p.args[0], p.args[1:]...)
	p.cmd.Env = append(ambient(), p.environ...)
	p.cmd.Stdout, p.cmd.Stderr = p.out, p.log
	err := p.cmd.Start()
	p.mu.Unlock()
	if err != nil {
		p.t.Fatal(err)
	}
	for time.Since(began) < 2*time.Minute { // on a busy machine
		if answer, err := p.client.Get(p.base + "/healthz"); err == nil {
			_ = answer.Body.Close()
			return time.Since(began)
		}
		wait(5 * time.Millisecond)
	}
	p.t.Fatalf("the program does not answer:\n%s", p.log)
	return 0
}

// kill ends the program as a power cut would.
func (p *program) kill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd == nil {
		return
	}
	_ = p.cmd.Process.Signal(syscall.SIGKILL)
	_ = p.cmd.Wait()
	p.cmd = nil
	p.client.CloseIdleConnections()
}

// wait passes real time: the program under test has no other.
func wait(d time.Duration) { <-time.NewTimer(d).C }

// answer is the response to a request. If there is none, status is 0 and cause is set.
type answer struct {
	cause    error
	status   int
	replayed bool
	body     map[string]any
}

// String shows the cause too; fmt does not format errors in unexported fields.
func (a answer) String() string {
	return fmt.Sprintf("%d %v, replayed %v, cause %v", a.status, a.body, a.replayed, a.cause)
}

func (p *program) send(method, path, body string) answer {
	r, err := http.NewRequestWithContext(context.Background(), method, p.base+path, strings.NewReader(body))
	if err != nil {
		p.t.Error(err)
		return answer{}
	}
	r.Header.Set("X-Api-Key", app.SandboxKey)
	r.Header.Set("X-Api-Secret", app.SandboxSecret)
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	got, err := p.client.Do(r)
	if err != nil {
		return answer{cause: err}
	}
	defer func() { _ = got.Body.Close() }()
	text, err := io.ReadAll(got.Body)
	if err != nil {
		return answer{cause: err}
	}
	a := answer{status: got.StatusCode, replayed: got.Header.Get("Idempotency-Replayed") == "true"}
	if len(text) > 0 {
		if err := json.Unmarshal(text, &a.body); err != nil {
			p.t.Errorf("%s %s: %v in %q", method, path, err, text)
		}
	}
	return a
}

// command runs another command of the program and returns its exit code.
func (p *program) command(args ...string) (int, string) {
	p.t.Helper()
	cmd := exec.Command(p.args[0], args...)
	cmd.Env = append(ambient(), p.environ...)
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		p.t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), string(out)
}

// testCluster is the processes of one installation.
type testCluster struct {
	gateways []*program
	storage  []string // flags that name the database, for other commands
}

// newCluster prepares one gateway with its bank in process on SQLite, or several gateways
// on PostgreSQL that share a running bank.
func newCluster(t *testing.T, engine string, gateways int) testCluster {
	t.Helper()
	if engine == "sqlite" {
		data := []string{"--data", t.TempDir()}
		return testCluster{[]*program{newProgram(t, nil, append([]string{"dev", "--log-level", "warn"}, data...)...)}, data}
	}
	environ := apptest.Secrets()
	bank := newProgram(t, environ, "bank", "--data", t.TempDir())
	bank.start()
	database := dbtest.Postgres(t)
	s := testCluster{storage: []string{"--database", database, "--data", t.TempDir()}}
	for range gateways {
		s.gateways = append(s.gateways, newProgram(t, environ,
			"dev", "--log-level", "warn", "--data", t.TempDir(), "--database", database, "--bank", bank.base))
	}
	return s
}

// verify runs the command verify.
func (s *testCluster) verify(t *testing.T) {
	t.Helper()
	if code, out := s.gateways[0].command(append([]string{"verify"}, s.storage...)...); code != 0 {
		t.Errorf("verify exits %d:\n%s", code, out)
	}
}

const (
	payinBody  = `{"paymentMethod":"PIX","amount":%d,"referenceId":%q,"customer":{"name":"Maria Silva","document":"52998224725"}}`
	payoutBody = `{"amount":%d,"pixKey":"a@b.example","pixKeyType":"EMAIL","beneficiaryName":"Maria Silva","beneficiaryDocument":"52998224725","referenceId":%q}`
)
