package bench

import (
	"context"
	"fmt"
	"net"
	"net/url"

	"github.com/porteira/porteira/internal/db"
)

// merchant is a merchant's credentials.
type merchant struct{ key, secret string }

// Writers of the bytes in Resources.
const (
	writtenByGateway = "gateway"         // its process, log included
	writtenByServer  = "write-ahead log" // PostgreSQL's
)

// Engines in the report.
const (
	engineSQLite   = "sqlite"
	enginePostgres = "postgres"
	engineUnknown  = "unknown"
)

// target is the measured gateway.
type target struct {
	address   string // host:port
	tls       bool
	engine    string
	pid       int
	merchants []merchant
	gateway   *gateway // nil if it was running already
	// headers are the header lines of every request of a merchant.
	headers [][]byte
}

// open starts the run's own gateway, or uses the one at the URL.
func (r *run) open(ctx context.Context) (*target, error) {
	t := &target{engine: engineUnknown, pid: r.PID, merchants: []merchant{{r.Key, r.Secret}}}
	base := r.URL
	if base == "" {
		r.progress("starting a gateway")
		g, list, err := startGateway(ctx, &r.Options)
		if err != nil {
			return nil, err
		}
		r.notes = append(r.notes, g.notes...)
		t.gateway, t.merchants, t.pid, base, t.engine = g, list, g.cmd.Process.Pid, g.baseURL, engineSQLite
		if db.IsPostgres(r.Database) {
			t.engine = enginePostgres
		}
	}
	if err := t.parse(base); err != nil {
		return nil, err
	}
	return t, nil
}

// parse parses the URL, and builds the header lines.
func (t *target) parse(base string) error {
	u, err := url.Parse(base)
	if err != nil || u.Host == "" || u.Path != "" && u.Path != "/" || u.Scheme != "http" && u.Scheme != "https" {
		return fmt.Errorf("%w: write the gateway's address as http://host:port", ErrInvalidOptions)
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
		t.headers = append(t.headers, []byte(head))
	}
	return nil
}

func (t *target) close() error {
	if t == nil || t.gateway == nil {
		return nil
	}
	return t.gateway.close()
}
