package bench

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/flow"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
)

// Names in a seeded folder. The mark is what says that the folder is one.
const (
	seedMark     = "bench.seed"
	seedKey      = "master.key"
	seedDatabase = "porteira.db"
)

// What the mark says: until the store is there, and from then on.
const (
	seedBegun = "A store for measurements, which is being made. See porteira bench seed.\n"
	seedMade  = "A store for measurements: its orders are made up. See porteira bench seed.\n"
)

// seedWatch is for how long others' beats are watched, of which a process that
// lives makes one a second; see internal/jobs.
const seedWatch = 3500 * time.Millisecond

// settingSeed is where a seeded database tells what it holds; a database
// without it is somebody's own.
const settingSeed = "bench-seed"

// seedState is how far a store is filled.
type seedState struct {
	Payins    int64     `json:"payins"`
	Payouts   int64     `json:"payouts"`
	Merchants int       `json:"merchants"`
	Until     time.Time `json:"until"` // so far the played past has come
}

func (s *seedState) orders() int64 { return s.Payins + s.Payouts }

func (s *seedState) text() string {
	text, err := json.Marshal(s)
	if err != nil { // numbers and a time always marshal
		panic(err)
	}
	return string(text)
}

// open opens the store, or makes one where there is nothing.
func (s *seeder) open(ctx context.Context) (err error) {
	fresh, err := vacant(ctx, s.Data, s.Database)
	if err != nil {
		return err
	}
	s.preparing, s.committing = env.NewSystemClock(), env.NewSystemClock()
	w := s.Env
	w.Clock = s.committing
	o, err := seedStore(s.Data, s.Database, fresh, w)
	if err != nil {
		return err
	}
	if fresh {
		if _, err := store.Migrate(ctx, o); err != nil {
			return err
		}
	}
	if s.store, err = store.Open(ctx, o); err != nil {
		return err
	}
	opened := false
	defer func() {
		if !opened {
			err = errors.Join(err, s.store.Close())
		}
	}()
	w.Clock = s.preparing
	s.flow = flow.New(flow.Options{Store: s.store, Env: w, Processors: processor.Registry{processorName: paper{}}})
	if s.state, err = s.begin(ctx, fresh); err != nil {
		return err
	}
	if fresh {
		if err := os.WriteFile(filepath.Join(s.Data, seedMark), []byte(seedMade), 0o600); err != nil {
			return fmt.Errorf("bench: the store's folder: %w", err)
		}
	}
	if err := s.plan(ctx); err != nil {
		return errors.Join(err, s.leave(ctx))
	}
	opened = true
	return nil
}

// leave frees what this process has in hand, even where it was stopped.
func (s *seeder) leave(ctx context.Context) error { return s.flow.Leave(context.WithoutCancel(ctx)) }

// vacant says whether a store is still to be made, as there is nothing yet or
// making it came to no end; an error is [ErrNotSeeded] where there is something
// that seeding did not make.
func vacant(ctx context.Context, folder, url string) (bool, error) {
	mark, err := os.ReadFile(filepath.Join(folder, seedMark))
	marked := err == nil
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, fmt.Errorf("bench: %w", err)
	}
	if !marked {
		list, err := os.ReadDir(folder)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return false, fmt.Errorf("bench: %w", err)
		}
		if len(list) > 0 {
			return false, fmt.Errorf("%w: the folder %s holds something, and no mark of seeding (%s). Name a new or an empty folder", ErrNotSeeded, folder, seedMark)
		}
	}
	if url != "" {
		n, err := tables(ctx, url)
		if err == nil && n > 0 && !marked {
			err = fmt.Errorf("%w: the database holds %d tables, and the folder %s no mark of seeding. Name an empty database, or the folder that belongs to it", ErrNotSeeded, n, folder)
		}
		return n == 0, err
	}
	if !marked || string(mark) == seedBegun { // then all that is in it was made here
		return true, nil
	}
	if _, err := os.Stat(filepath.Join(folder, seedDatabase)); errors.Is(err, fs.ErrNotExist) {
		return false, fmt.Errorf("%w: the folder %s holds no database. Name the one that belongs to it", ErrNotSeeded, folder)
	}
	return false, nil
}

// tables is how many tables a PostgreSQL database holds, the server's own aside.
func tables(ctx context.Context, url string) (n int, err error) {
	c, err := pgx.Connect(ctx, url)
	if err != nil {
		return 0, errUnreachable
	}
	defer func() { _ = c.Close(ctx) }()
	err = c.QueryRow(ctx, "SELECT count(*) FROM pg_tables WHERE schemaname NOT IN ('pg_catalog', 'information_schema') AND schemaname NOT LIKE 'pg\\_temp%'").Scan(&n)
	if err != nil {
		return 0, fmt.Errorf("bench: look into the database: %w", err)
	}
	return n, nil
}

// seedStore are the options of a seeded store; one that is still to be made gets
// its folder, its mark and its master key first.
func seedStore(folder, url string, fresh bool, w env.Env) (o store.Options, err error) {
	o = store.Options{Database: url, Env: w}
	if url == "" {
		o.Database = filepath.Join(folder, seedDatabase)
	}
	if fresh {
		err = makeSeedFolder(folder, w.Random)
	}
	var key []byte
	if err == nil {
		if key, err = os.ReadFile(filepath.Join(folder, seedKey)); err == nil {
			key, err = store.ParseMasterKey(string(key))
		}
	}
	if err == nil {
		o.Keys, err = store.NewKeyring(key, w.Random)
	}
	if err != nil {
		return o, fmt.Errorf("bench: the store's folder: %w", err)
	}
	return o, nil
}

// makeSeedFolder makes what is missing of a folder: the mark, by which it is
// known if the rest comes to no end, and then a whole key.
func makeSeedFolder(folder string, random env.Random) error {
	if err := store.MakeFolder(folder); err != nil {
		return err
	}
	mark, path := filepath.Join(folder, seedMark), filepath.Join(folder, seedKey)
	if _, err := os.Stat(mark); errors.Is(err, fs.ErrNotExist) {
		if err := os.WriteFile(mark, []byte(seedBegun), 0o600); err != nil {
			return err
		}
	}
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	key := make([]byte, store.MasterKeyLength)
	random.Read(key)
	if err := os.WriteFile(path+".new", []byte(base64.StdEncoding.EncodeToString(key)+"\n"), 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// begin reads how far the store is filled, and makes the process one that may claim.
func (s *seeder) begin(ctx context.Context, fresh bool) (at seedState, err error) {
	if fresh {
		n := s.Merchants
		if n == 0 {
			n = seedMerchants
		}
		length := max(seedYear, time.Duration(s.Payins)*seedGap)
		at = seedState{Merchants: n, Until: s.Env.Clock.Now().Add(-length).Truncate(time.Second)}
		text, err := s.store.Setting(ctx, s.setting)
		if err != nil {
			return at, err
		}
		mark := s.flow.NewSlice()
		if text == "" { // else it was stopped right after it had begun
			mark.Note(s.setting, at.text())
		}
		if err := mark.Commit(ctx); err != nil {
			return at, err
		}
	}
	if at, err = readSeedState(ctx, s.store, s.setting); err != nil {
		return at, err
	}
	if s.Merchants > 0 && s.Merchants != at.Merchants {
		return at, fmt.Errorf("%w: the store was begun with %d merchants, and keeps them", ErrUsage, at.Merchants)
	}
	if err := s.alone(ctx); err != nil {
		return at, err
	}
	s.setTime(at.Until)
	inst, err := s.store.ReadInstallation(ctx)
	if err != nil {
		return at, err
	}
	// Whoever is still on the list died in the middle.
	return at, s.flow.Join(ctx, inst.Beat, true)
}

// alone makes sure that no gateway works on the store: it would send news and
// money of orders that are made up. SQLite's lock keeps others out; on PostgreSQL
// the beat of a process that lives moves.
func (s *seeder) alone(ctx context.Context) error {
	before, err := s.store.Nodes(ctx)
	if err != nil || len(before) == 0 || s.store.Engine() == engineSQLite {
		return err
	}
	s.tellf("waiting, to see whether a gateway works on the database")
	if !wait(ctx, s.Env.Clock, seedWatch) {
		return ctx.Err()
	}
	after, err := s.store.Nodes(ctx)
	if err != nil {
		return err
	}
	for _, n := range after {
		if !slices.Contains(before, n) {
			return fmt.Errorf("%w: a gateway works on the database; stop it first", ErrBusy)
		}
	}
	return nil
}

// readSeedState tells how far a store is filled; [ErrNotSeeded] where it is
// none that seeding made.
func readSeedState(ctx context.Context, s *store.Store, setting string) (at seedState, err error) {
	text, err := s.Setting(ctx, setting)
	if err != nil {
		return at, err
	}
	if text == "" {
		return at, fmt.Errorf("%w: its database was not made by seeding. Name an empty one; drop this one where a seeding was stopped as it began", ErrNotSeeded)
	}
	if err := json.Unmarshal([]byte(text), &at); err != nil {
		return at, fmt.Errorf("bench: what the store tells of its seeding: %w", err)
	}
	return at, nil
}

// plan finds the merchants, makes those that are missing, and settles how much
// there is to do and how the past goes on.
func (s *seeder) plan(ctx context.Context) error {
	sum := 0.0
	for i := range s.state.Merchants {
		name := s.names + strconv.Itoa(i+1)
		m, err := s.store.MerchantByName(ctx, name)
		if errors.Is(err, store.ErrNotFound) {
			m, err = s.flow.CreateMerchant(ctx, store.Merchant{Name: name, City: "SAO PAULO", Processor: processorName}, "")
		}
		if err == nil {
			err = s.fund(ctx, m)
		}
		if err != nil {
			return err
		}
		s.merchants = append(s.merchants, m)
		sum += 1 / float64(i+1)
		s.shares = append(s.shares, sum)
	}
	s.goal = s.state
	s.goal.Payins, s.goal.Payouts = max(s.Payins, s.state.Payins), max(s.Payouts, s.state.Payouts)
	s.gap = seedGap
	if n := s.goal.Payins - s.state.Payins; n > 0 {
		s.gap = min(s.gap, max(0, s.Env.Clock.Now().Sub(s.state.Until))/time.Duration(n))
	}
	return nil
}

// fund gives a merchant money to send, once.
func (s *seeder) fund(ctx context.Context, m store.Merchant) error {
	held, err := s.store.Balances(ctx, m.ID)
	if err != nil || len(held) > 0 {
		return err
	}
	return s.flow.Fund(ctx, m, funds)
}

// setTime moves the clock by which slices are committed.
func (s *seeder) setTime(t time.Time) { s.committing.SetOffset(t.Sub(s.Env.Clock.Now())) }

// present ends the played past: what is done from now on is done now.
func (s *seeder) present() {
	s.past, s.state.Until = s.state.Until, s.Env.Clock.Now()
	s.setTime(s.state.Until)
}

// paper is the processor of seeded merchants: it mints each charge, and is
// never called.
type paper struct{}

func (paper) Profile() processor.Profile {
	return processor.Profile{
		Name: processorName, Methods: []payment.Method{payment.PIX}, IdempotentByOurID: true, ChecksDocuments: true,
		ChargeTimeout: time.Minute, TransferTimeout: time.Minute,
	}
}

var errPaper = errors.New("bench: a processor on paper cannot be called")

func (paper) Charge(context.Context, processor.ChargeRequest) processor.ChargeAnswer {
	return processor.ChargeAnswer{Cause: errPaper}
}

func (paper) QueryCharge(context.Context, string) processor.ChargeReport {
	return processor.ChargeReport{Cause: errPaper}
}

func (paper) Mint(r processor.ChargeRequest) (c processor.Charge, ok bool) {
	code, err := payCode(r.ExternalID, int64(r.Amount))
	c.PIX = &payment.PIXDetail{QRCode: code, TxID: r.ExternalID, ExpiresAt: r.ExpiresAt}
	return c, err == nil
}

func (paper) Transfer(context.Context, processor.TransferRequest, func() error) processor.TransferAnswer {
	return processor.TransferAnswer{Outcome: processor.NotSent, Cause: errPaper}
}

func (paper) QueryTransfer(context.Context, string) processor.TransferReport {
	return processor.TransferReport{Cause: errPaper}
}
