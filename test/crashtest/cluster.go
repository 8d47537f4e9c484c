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
)

// Secrets that the gateways and the bank share, and those that porteira dev prints.
const (
	masterKey     = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
	bankSecret    = "the-secret-of-the-bank"
	webhookSecret = "whsec_c2FuZGJveC13ZWJob29rLXNlY3JldC0wMDAx"
	funds         = 1_000_000_00 // cents that the merchant has at first
)

// merchantHeaders are the credentials of porteira dev's merchant.
var merchantHeaders = map[string]string{"X-Api-Key": "sandbox_key", "X-Api-Secret": "sandbox_secret"}

// receiverCount is the number of receivers: a dead one must not delay the other.
const receiverCount = 2

// layout is the folders of a cluster and its options.
type layout struct {
	engine   string
	seed     uint64
	gateways int
	programs programs
	folder   string // of logs and journals
	data     string // of everything that the gateways and the bank store; with PostgreSQL, of the server
	// cuttable puts a proxy between each gateway and PostgreSQL.
	cuttable bool
	// embeddedBank runs the bank inside the gateway. An order is then one commit, without a
	// call to the bank; its payments cannot be read from outside.
	embeddedBank bool
	// sharedKey gives the gateways a master key; otherwise the gateway generates one in
	// its data folder.
	sharedKey bool
	readyPath string   // of a gateway
	flags     []string // of gateways, besides
}

// cluster is everything that runs.
type cluster struct {
	processes    []*process // all that are killed
	gateways     []*process
	bank         *process // nil if it is embedded in the gateway
	gatewayURLs  []string
	bankURL      string
	receiverURLs []string
	database     *database
	storage      []string // flags that name the gateways' data to other commands
	environ      []string // of those commands
}

// newCluster lays out a cluster; nothing runs yet.
func newCluster(l layout) (*cluster, error) {
	list, err := addresses(newRandom(uint64(os.Getpid()), l.seed), 1+receiverCount+l.gateways+databaseAddresses)
	if err != nil {
		return nil, err
	}
	take := func() string {
		first := list[0]
		list = list[1:]
		return first
	}
	c := &cluster{}
	add := func(p *process) *process {
		p.folder, p.actions, p.suspensions = l.folder, make(chan func()), make(chan func())
		c.processes = append(c.processes, p)
		return p
	}
	local := l.data // of the gateways and the bank
	if l.engine == postgres {
		local = l.folder
	}
	if !l.embeddedBank {
		c.bank = add(c.newBank(l, local, take()))
	}
	for n := range receiverCount {
		p, err := c.newReceiver(l, n, take())
		if err != nil {
			return nil, err
		}
		add(p)
	}
	if c.database, err = newDatabase(l, take); err != nil {
		return nil, err
	}
	if c.database.server != nil {
		add(c.database.server)
	}
	for n := range l.gateways {
		c.gateways = append(c.gateways, add(c.newGateway(l, local, n, take())))
	}
	c.storage = []string{"--data", filepath.Join(local, "gateway-0"), "--database", c.database.direct}
	if l.sharedKey {
		c.environ = []string{"PORTEIRA_MASTER_KEY=" + masterKey}
	}
	return c, nil
}

func (c *cluster) newBank(l layout, local, address string) *process {
	c.bankURL = "http://" + address
	return &process{
		kind: kindBank, label: kindBank, environ: []string{"PORTEIRA_BANK_SECRET=" + bankSecret}, ready: answers(c.bankURL+"/", 401),
		args: []string{l.programs.plain, "bank", "--data", filepath.Join(local, "bank"), "--listen", address, "--log-level", "warn"},
	}
}

func (c *cluster) newReceiver(l layout, n int, address string) (*process, error) {
	self, err := os.Executable()
	c.receiverURLs = append(c.receiverURLs, "http://"+address)
	return &process{
		kind: kindReceiver, label: fmt.Sprintf("receiver-%d", n), ready: answers("http://"+address+"/ready", 200),
		args: []string{self, receiverRole, address, receiverJournal(l.folder, n), strconv.FormatUint(l.seed+uint64(n), 10)},
	}, err
}

func (c *cluster) newGateway(l layout, local string, n int, address string) *process {
	c.gatewayURLs = append(c.gatewayURLs, "http://"+address)
	p := &process{
		kind: kindGateway, label: fmt.Sprintf("gateway-%d", n), environ: []string{"PORTEIRA_BANK_SECRET=" + bankSecret},
		failpoint: l.programs.failpoint, ready: answers("http://"+address+l.readyPath, 200), needs: c.database,
		args: append([]string{
			l.programs.plain, "dev", "--log-level", "warn", "--data", filepath.Join(local, fmt.Sprintf("gateway-%d", n)),
			"--listen", address, "--database", c.database.through[n],
			"--public-url", "https://pay.example", // one for all: events and answers contain it
		}, l.flags...),
	}
	if c.bank != nil {
		p.args = append(p.args, "--bank", c.bankURL)
	}
	if l.sharedKey {
		p.environ = append(p.environ, "PORTEIRA_MASTER_KEY="+masterKey)
	}
	return p
}

func receiverJournal(folder string, n int) string {
	return filepath.Join(folder, fmt.Sprintf("receiver-%d.journal", n))
}

// answers reports a process as ready when a URL answers with a status.
func answers(url string, status int) func(ctx context.Context) bool {
	c := newHTTPClient(readyMax, nil)
	return func(ctx context.Context) bool { return c.send(ctx, "GET", url, "").status == status }
}

// onMachine are the processes that lose their power together.
func (c *cluster) onMachine() []*process {
	return slices.DeleteFunc(append([]*process{c.bank, c.database.server}, c.gateways...), func(p *process) bool { return p == nil })
}

// porteira runs another command of the program on the gateways' data.
func (c *cluster) porteira(ctx context.Context, program string, arguments ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, program, append(arguments, c.storage...)...)
	cmd.Env = append(environ(), c.environ...)
	return cmd.CombinedOutput()
}

// verify runs porteira verify and returns its defects.
func (c *cluster) verify(ctx context.Context, program string) (string, error) {
	out, err := c.porteira(ctx, program, "verify")
	if _, failed := errors.AsType[*exec.ExitError](err); failed {
		return string(out), nil
	}
	if err == nil && !strings.Contains(string(out), "no defects") {
		err = fmt.Errorf("verify prints %q", out)
	}
	return "", err
}

// databaseAddresses is the number of addresses of a database and its proxies.
const databaseAddresses = 3

// newDatabase lays out a database; take hands out addresses.
func newDatabase(l layout, take func() string) (*database, error) {
	if l.engine == postgres {
		return newPostgres(l, take)
	}
	file := filepath.Join(l.data, databaseFile)
	return &database{direct: file, through: []string{file}}, nil
}

// databaseFile is the file of an SQLite database.
const databaseFile = "porteira.db"
