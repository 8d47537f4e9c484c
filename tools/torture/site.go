package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/porteira/porteira/tools/rig"
)

// What the gateways and the bank share, and what porteira dev tells everybody.
const (
	masterKey     = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
	bankSecret    = "the-secret-of-the-bank"
	webhookSecret = "whsec_c2FuZGJveC13ZWJob29rLXNlY3JldC0wMDAx"
	funds         = 1_000_000_00 // cents that the merchant has at first
)

// merchantHeaders are the credentials of porteira dev's merchant.
var merchantHeaders = map[string]string{"X-Api-Key": "sandbox_key", "X-Api-Secret": "sandbox_secret"}

// receiverCount is how many receivers there are: one that is dead must not
// delay the other.
const receiverCount = 2

// Kinds of processes, as figures name them.
const (
	kindGateway  = "gateway"
	kindBank     = "bank"
	kindReceiver = "receiver"
	kindServer   = "database server"
)

// site is everything that runs.
type site struct {
	processes []*process // those that are killed
	gateways  []*process
	bases     []string // addresses of the gateways
	bank      string   // address of the bank
	receivers []string // addresses
	database  *database
	storage   []string // flags that name the database to other commands
}

// newSite lays out a site; nothing runs yet.
func newSite(o settings, folder string) (*site, error) {
	list, err := addresses(newChance(uint64(os.Getpid()), o.seed), 1+receiverCount+o.gatewayCount+databaseAddresses)
	if err != nil {
		return nil, err
	}
	take := func() string {
		first := list[0]
		list = list[1:]
		return first
	}
	s := &site{}
	add := func(p *process) *process {
		p.folder, p.acts = folder, make(chan func())
		s.processes = append(s.processes, p)
		return p
	}
	secrets := []string{"PORTEIRA_MASTER_KEY=" + masterKey, "PORTEIRA_BANK_SECRET=" + bankSecret}

	address := take()
	s.bank = "http://" + address
	add(&process{
		kind: kindBank, label: kindBank, environ: secrets, ready: answers(s.bank+"/", 401),
		args: []string{o.binaries.plain, "bank", "--data", filepath.Join(folder, "bank"), "--listen", address, "--log-level", "warn"},
	})
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	for n := range receiverCount {
		address := take()
		s.receivers = append(s.receivers, "http://"+address)
		add(&process{
			kind: kindReceiver, label: fmt.Sprintf("receiver-%d", n), ready: answers("http://"+address+"/ready", 200),
			args: []string{self, receiverRole, address, receiverJournal(folder, n), strconv.FormatUint(o.seed+uint64(n), 10)},
		})
	}
	if s.database, err = newDatabase(o, folder, take); err != nil {
		return nil, err
	}
	if s.database.server != nil {
		add(s.database.server)
	}
	s.storage = []string{"--data", filepath.Join(folder, "gateway-0"), "--database", s.database.direct}
	for n := range o.gatewayCount {
		address := take()
		s.bases = append(s.bases, "http://"+address)
		s.gateways = append(s.gateways, add(&process{
			kind: kindGateway, label: fmt.Sprintf("gateway-%d", n), environ: secrets, tagged: o.binaries.tagged,
			ready: answers("http://"+address+"/readyz", 200), needs: s.database,
			args: []string{
				o.binaries.plain, "dev", "--log-level", "warn", "--data", filepath.Join(folder, fmt.Sprintf("gateway-%d", n)),
				"--listen", address, "--bank", s.bank, "--database", s.database.through[n],
				"--public-url", "https://pay.example", // one for all: events and answers name it
			},
		}))
	}
	return s, nil
}

func receiverJournal(folder string, n int) string {
	return filepath.Join(folder, fmt.Sprintf("receiver-%d.journal", n))
}

// open makes the database ready for a first start.
func (s *site) open(ctx context.Context) error { return s.database.open(ctx) }

// close removes what is not in the run's folder.
func (s *site) close() error { return s.database.close() }

// verify has the program prove its own books, and returns what it objects to.
func (s *site) verify(ctx context.Context, program string) (string, error) {
	cmd := exec.CommandContext(ctx, program, append([]string{"verify"}, s.storage...)...)
	cmd.Env = append(rig.Environ(), "PORTEIRA_MASTER_KEY="+masterKey)
	out, err := cmd.CombinedOutput()
	if _, failed := errors.AsType[*exec.ExitError](err); failed {
		return string(out), nil
	}
	if err == nil && !strings.Contains(string(out), "all sound") {
		err = fmt.Errorf("verify says %q", out)
	}
	return "", err
}
