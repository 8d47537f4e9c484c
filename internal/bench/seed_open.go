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
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/porteira/porteira/internal/flow"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/world"
)

// Names in a seeded folder. The mark is what says that the folder is one.
const (
	seedMark     = "bench.seed"
	seedKey      = "master.key"
	seedDatabase = "porteira.db"
)

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
	s.preparing, s.committing = world.NewSystemClock(), world.NewSystemClock()
	w := s.World
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
	defer func() {
		if err != nil {
			err = errors.Join(err, s.store.Close())
		}
	}()
	w.Clock = s.preparing
	s.flow = flow.New(flow.Options{Store: s.store, World: w, Processors: processor.Registry{processorName: paper{}}})
	if s.state, err = s.begin(ctx, fresh); err != nil {
		return err
	}
	return s.plan(ctx)
}

// vacant says whether there is nothing yet, so that a store may be made there;
// an error is [ErrNotSeeded] where there is something that seeding did not make.
func vacant(ctx context.Context, folder, url string) (bool, error) {
	_, err := os.Stat(filepath.Join(folder, seedMark))
	if err == nil {
		return false, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return false, fmt.Errorf("bench: %w", err)
	}
	list, err := os.ReadDir(folder)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, fmt.Errorf("bench: %w", err)
	}
	if len(list) > 0 {
		return false, fmt.Errorf("%w: the folder %s holds something, and no mark of seeding (%s). Name a new or an empty folder", ErrNotSeeded, folder, seedMark)
	}
	if url == "" {
		return true, nil
	}
	tables, err := tables(ctx, url)
	if err != nil {
		return false, err
	}
	if tables > 0 {
		return false, fmt.Errorf("%w: the database holds %d tables, and the folder %s no mark of seeding. Name an empty database, or the folder that belongs to it", ErrNotSeeded, tables, folder)
	}
	return true, nil
}

// tables is how many tables a PostgreSQL database holds, the server's own aside.
func tables(ctx context.Context, url string) (n int, err error) {
	c, err := pgx.Connect(ctx, url)
	if err != nil {
		return 0, errors.New("bench: the database cannot be reached") // the error may hold a password
	}
	defer func() { _ = c.Close(ctx) }()
	err = c.QueryRow(ctx, "SELECT count(*) FROM pg_tables WHERE schemaname NOT IN ('pg_catalog', 'information_schema') AND schemaname NOT LIKE 'pg\\_temp%'").Scan(&n)
	if err != nil {
		return 0, fmt.Errorf("bench: look into the database: %w", err)
	}
	return n, nil
}

// seedStore are the options of a seeded store; a fresh one gets its folder, its
// mark and its master key first.
func seedStore(folder, url string, fresh bool, w world.World) (o store.Options, err error) {
	o = store.Options{Database: url, World: w}
	if url == "" {
		o.Database = filepath.Join(folder, seedDatabase)
	}
	path := filepath.Join(folder, seedKey)
	if fresh {
		key := make([]byte, store.MasterKeyLength)
		w.Random.Read(key)
		err = store.MakeFolder(folder)
		for name, text := range map[string]string{
			filepath.Join(folder, seedMark): "A store for measurements: its orders are made up. See porteira bench seed.\n",
			path:                            base64.StdEncoding.EncodeToString(key) + "\n",
		} {
			if err == nil {
				err = os.WriteFile(name, []byte(text), 0o600)
			}
		}
	}
	var key []byte
	if err == nil {
		if key, err = os.ReadFile(path); err == nil {
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

// begin reads how far the store is filled, and makes the process one that may claim.
func (s *seeder) begin(ctx context.Context, fresh bool) (at seedState, err error) {
	if fresh {
		n := s.Merchants
		if n == 0 {
			n = seedMerchants
		}
		length := max(seedYear, time.Duration(s.Payins)*seedGap)
		at = seedState{Merchants: n, Until: s.World.Clock.Now().Add(-length).Truncate(time.Second)}
		mark := s.flow.NewSlice()
		mark.Note(s.setting, at.text())
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
	s.setTime(at.Until)
	inst, err := s.store.ReadInstallation(ctx)
	if err != nil {
		return at, err
	}
	return at, s.flow.Join(ctx, inst.Beat, s.store.Engine() == engineSQLite)
}

// readSeedState tells how far a store is filled; [ErrNotSeeded] where it is
// none that seeding made.
func readSeedState(ctx context.Context, s *store.Store, setting string) (at seedState, err error) {
	text, err := s.Setting(ctx, setting)
	if err != nil {
		return at, err
	}
	if text == "" {
		return at, fmt.Errorf("%w: its database was not made by seeding", ErrNotSeeded)
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
			if err == nil {
				err = s.flow.Fund(ctx, m, funds)
			}
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
		s.gap = min(s.gap, max(0, s.World.Clock.Now().Sub(s.state.Until))/time.Duration(n))
	}
	return nil
}

// setTime moves the clock by which slices are committed.
func (s *seeder) setTime(t time.Time) { s.committing.SetOffset(t.Sub(s.World.Clock.Now())) }

// present ends the played past: what is done from now on is done now.
func (s *seeder) present() {
	s.past, s.state.Until = s.state.Until, s.World.Clock.Now()
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
