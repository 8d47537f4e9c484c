package bench

import (
	"context"
	"fmt"
	"net"
	"net/url"

	"github.com/porteira/porteira/internal/store"
)

// merchant is a merchant's credentials.
type merchant struct{ key, secret string }

// Who wrote what is counted as written.
const (
	writtenByGateway = "gateway"         // its process, log included
	writtenByServer  = "write-ahead log" // PostgreSQL's
)

// Engines, as the report names them.
const (
	engineSQLite   = "sqlite"
	enginePostgres = "postgres"
	engineUnknown  = "unknown"
)

// target is the gateway that is measured.
type target struct {
	address   string // host:port
	tls       bool
	engine    string
	pid       int
	merchants []merchant
	own       *gateway // nil where it was there already
	// heads are the lines that every request of a merchant carries, each ended.
	heads [][]byte
}

// open starts the run's own gateway, or takes the one that was named.
func (r *run) open(ctx context.Context) (*target, error) {
	t := &target{engine: engineUnknown, pid: r.PID, merchants: []merchant{{r.Key, r.Secret}}}
	base := r.URL
	if base == "" {
		r.tell("starting a gateway")
		g, list, err := startGateway(ctx, &r.Options)
		if err != nil {
			return nil, err
		}
		r.notes = append(r.notes, g.notes...)
		t.own, t.merchants, t.pid, base, t.engine = g, list, g.cmd.Process.Pid, g.base, engineSQLite
		if store.IsPostgres(r.Database) {
			t.engine = enginePostgres
		}
	}
	if err := t.parse(base); err != nil {
		return nil, err
	}
	return t, nil
}

// parse reads the address, and writes the lines that follow from it.
func (t *target) parse(base string) error {
	u, err := url.Parse(base)
	if err != nil || u.Host == "" || u.Path != "" && u.Path != "/" || u.Scheme != "http" && u.Scheme != "https" {
		return fmt.Errorf("%w: write the gateway's address as http://host:port", ErrUsage)
	}
	t.address, t.tls = u.Host, u.Scheme == "https"
	if u.Port() == "" {
		t.address = net.JoinHostPort(u.Hostname(), map[bool]string{false: "80", true: "443"}[t.tls])
	}
	for _, m := range t.merchants {
		head := "Host: " + u.Host + "\r\n"
		if m.key != "" {
			head += "X-Api-Key: " + m.key + "\r\nX-Api-Secret: " + m.secret + "\r\n"
		}
		t.heads = append(t.heads, []byte(head))
	}
	return nil
}

func (t *target) close() error {
	if t == nil || t.own == nil {
		return nil
	}
	return t.own.close()
}
