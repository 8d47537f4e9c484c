// Package dbtest gives tests a PostgreSQL server, and databases of their own on it.
//
// Each test gets the URL of its own database:
//
//	url := dbtest.Postgres(t)                           // empty
//	url := dbtest.PostgresFrom(t, "store", migrate)     // copied from a template that migrate prepared once
//
// The server is the one that PORTEIRA_TEST_POSTGRES_URL names, or else one that
// the test process starts from the binaries on this machine. If there is neither,
// the test is skipped; under CI=true or PORTEIRA_REQUIRE_POSTGRES=1 it fails
// instead: a missing engine must not look like a passed one.
package dbtest

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

const (
	// adminTimeout bounds one administrative statement, of which CREATE DATABASE is
	// slowest.
	adminTimeout = time.Minute

	sqlstateDuplicateDatabase = "42P04"
	sqlstateInvalidCatalog    = "3D000"
)

// collations are tried in this order for an empty database. The first two do not
// sort by bytes, which exposes SQL without COLLATE "C".
var collations = []string{
	"LOCALE_PROVIDER icu ICU_LOCALE 'pt-BR'",
	"LC_COLLATE 'en_US.UTF-8' LC_CTYPE 'en_US.UTF-8'",
	"LC_COLLATE 'C.UTF-8' LC_CTYPE 'C.UTF-8'",
}

// cluster is one PostgreSQL server and the databases that this process made on it.
type cluster struct {
	admin string // URL of the maintenance database

	mu        sync.Mutex
	databases int
	templates map[string]*template
}

// template is a database that others are copied from. Its lock lets the first
// test prepare it while the others wait; other templates are not blocked.
type template struct {
	mu       sync.Mutex
	database string // empty until prepared
}

// common is the server of all tests of the process; the first use starts it.
var common struct {
	once    sync.Once
	cluster *cluster
	server  *Server // nil if the server is not ours
	err     error
}

// Postgres returns the URL of a new, empty UTF-8 database. It is dropped when the test ends.
func Postgres(t testing.TB) string {
	t.Helper()
	return PostgresFrom(t, "empty", func(string) error { return nil })
}

// PostgresFrom returns the URL of a new database, copied from the template of
// that name; it is dropped when the test ends. The first call of a process
// creates the template: prepare gets its URL and must close every connection that
// it opens, as PostgreSQL copies only a database that nobody is using.
func PostgresFrom(t testing.TB, name string, prepare func(url string) error) string {
	t.Helper()
	common.once.Do(func() { common.cluster, common.server, common.err = open() })
	if common.err != nil {
		unavailable(t, common.err)
	}
	return common.cluster.database(t, name, prepare)
}

// CopyPostgres returns the URL of a copy of a database of [Postgres] or [PostgresFrom], to
// which nothing may be connected meanwhile. The copy is dropped when the test ends.
func CopyPostgres(t testing.TB, database string) (string, error) {
	t.Helper()
	u, err := url.Parse(database)
	if err != nil {
		return "", fmt.Errorf("copy database: %w", err)
	}
	copied, err := common.cluster.create("TEMPLATE " + identifier(strings.TrimPrefix(u.Path, "/")))
	if err != nil {
		return "", fmt.Errorf("copy database: %w", err)
	}
	t.Cleanup(func() {
		if err := common.cluster.drop(copied); err != nil {
			t.Errorf("drop copy of test database: %v", err)
		}
	})
	u.Path = "/" + copied
	return u.String(), nil
}

// Main runs the tests of a package and afterwards removes what they left on
// the server, or the server itself. For use in TestMain:
//
//	func TestMain(m *testing.M) { os.Exit(dbtest.Main(m)) }
//
// A process that ends without it, or dies, still stops its own server; only
// templates on a server that is not ours would remain.
func Main(m *testing.M) int {
	code := m.Run()
	if common.server != nil {
		common.server.Close()
	} else if common.cluster != nil {
		common.cluster.dropTemplates()
	}
	return code
}

// open finds the server of this process, or starts it.
func open() (*cluster, *Server, error) {
	if admin := os.Getenv("PORTEIRA_TEST_POSTGRES_URL"); admin != "" {
		if _, err := url.Parse(admin); err != nil || !strings.Contains(admin, "://") {
			return nil, nil, errors.New("PORTEIRA_TEST_POSTGRES_URL: want a URL such as postgres://user@host:5432/postgres")
		}
		return newCluster(admin), nil, nil
	}
	server, err := StartServer("autovacuum=off", "jit=off") // its databases are small and do not last
	if err != nil {
		return nil, nil, err
	}
	return server.cluster, server, nil
}

// unavailable ends the test: a skip on a developer's machine, a failure in CI.
func unavailable(t testing.TB, err error) {
	t.Helper()
	if !errors.Is(err, ErrNoPostgres) || os.Getenv("CI") == "true" || os.Getenv("PORTEIRA_REQUIRE_POSTGRES") == "1" {
		t.Fatalf("PostgreSQL for tests: %v", err)
	}
	t.Skipf("%v; this engine is NOT tested here", err)
}

func newCluster(admin string) *cluster {
	return &cluster{admin: admin, templates: map[string]*template{}}
}

// database creates a database for one test from the named template.
func (c *cluster) database(t testing.TB, name string, prepare func(url string) error) string {
	t.Helper()
	source, err := c.template(name, prepare)
	if err != nil {
		t.Fatalf("template database %q: %v", name, err)
	}
	database, err := c.create("TEMPLATE " + identifier(source))
	if err != nil {
		t.Fatalf("copy template database %q: %v", name, err)
	}
	t.Cleanup(func() {
		if err := c.drop(database); err != nil {
			t.Errorf("drop test database: %v", err)
		}
	})
	return c.url(database)
}

// template returns the database of that name, which the first call creates and
// prepares. One whose preparation failed is dropped, and prepared again by the
// next test.
func (c *cluster) template(name string, prepare func(url string) error) (string, error) {
	c.mu.Lock()
	tmpl := c.templates[name]
	if tmpl == nil {
		tmpl = &template{}
		c.templates[name] = tmpl
	}
	c.mu.Unlock()

	tmpl.mu.Lock()
	defer tmpl.mu.Unlock()
	if tmpl.database != "" {
		return tmpl.database, nil
	}
	database, err := c.createEmpty()
	if err != nil {
		return "", err
	}
	if err := prepare(c.url(database)); err != nil {
		return "", errors.Join(fmt.Errorf("prepare: %w", err), c.drop(database))
	}
	tmpl.database = database
	return database, nil
}

// createEmpty creates an empty database, with the first collation that the server has.
func (c *cluster) createEmpty() (string, error) {
	var failures []error
	for _, collation := range collations {
		database, err := c.create("TEMPLATE template0 ENCODING 'UTF8' " + collation)
		if err == nil {
			return database, nil
		}
		failures = append(failures, err)
	}
	return "", errors.Join(failures...)
}

// create makes a database under a name that is free on the server.
func (c *cluster) create(options string) (string, error) {
	for {
		c.mu.Lock()
		c.databases++
		database := fmt.Sprintf("porteira_test_%d_%d", os.Getpid(), c.databases)
		c.mu.Unlock()

		err := c.exec("CREATE DATABASE " + identifier(database) + " " + options)
		if err == nil {
			return database, nil
		}
		// On a server that several machines share, another process may have our number.
		if sqlstate(err) != sqlstateDuplicateDatabase {
			return "", err
		}
	}
}

// drop removes a database, together with the connections that a test left open.
func (c *cluster) drop(database string) error {
	err := c.exec("DROP DATABASE " + identifier(database) + " WITH (FORCE)")
	if sqlstate(err) == sqlstateInvalidCatalog {
		return nil
	}
	return err
}

// dropTemplates cleans a server that outlives this process. Errors are ignored:
// the tests are over.
func (c *cluster) dropTemplates() {
	for _, tmpl := range c.templates {
		if tmpl.database != "" {
			_ = c.drop(tmpl.database)
		}
	}
}

// exec runs one administrative statement on a connection of its own.
func (c *cluster) exec(sql string) error {
	ctx, cancel := context.WithTimeout(context.Background(), adminTimeout)
	defer cancel()
	conn, err := pgx.Connect(ctx, c.admin)
	if err != nil {
		return fmt.Errorf("connect to the maintenance database: %w", err)
	}
	_, err = conn.Exec(ctx, sql)
	if err != nil {
		err = fmt.Errorf("%s: %w", sql, err)
	}
	return errors.Join(err, conn.Close(ctx))
}

// url is the address of a database on the server. The maintenance URL was
// checked when the server was opened.
func (c *cluster) url(database string) string {
	u, err := url.Parse(c.admin)
	if err != nil {
		panic(fmt.Sprintf("dbtest: maintenance URL: %v", err))
	}
	u.Path = "/" + database
	return u.String()
}

func identifier(name string) string { return pgx.Identifier{name}.Sanitize() }

// sqlstate is the code of a server's error, or empty for any other.
func sqlstate(err error) string {
	if failure, ok := errors.AsType[*pgconn.PgError](err); ok {
		return failure.Code
	}
	return ""
}
