package app

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/porteira/porteira/internal/config"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/store"
)

// Names of files in the data folder.
const (
	journalFile = "bank.journal"
	markerFile  = "installation.beat"
)

// makeFolder makes the data folder, which is nobody else's to read.
func makeFolder(path string) error {
	if err := store.MakeFolder(path); err != nil {
		return fmt.Errorf("the data folder cannot be made: %w: choose another by --data", err)
	}
	return nil
}

// masterKey reads the key, or makes one (fresh) where development begins. A
// fresh key is kept by keepKey once it is sure that nothing is sealed already.
func (a *App) masterKey() (key []byte, fresh bool, err error) {
	key, err = readMasterKey(a.cfg)
	if !errors.Is(err, fs.ErrNotExist) {
		return key, false, err
	}
	if a.cfg.Mode != config.Dev {
		return nil, false, fmt.Errorf("the master key is missing: put it into %s, or set PORTEIRA_MASTER_KEY", a.cfg.MasterKeyFile)
	}
	if !store.IsPostgres(a.cfg.Database) {
		if _, err := os.Stat(databasePath(a.cfg)); err == nil {
			return nil, false, fmt.Errorf("the database %s is there, but its master key %s is gone, and without it secrets and personal data cannot be read: put the key back from its copy, or move the database away to begin anew",
				databasePath(a.cfg), a.cfg.MasterKeyFile)
		}
	}
	key = make([]byte, store.MasterKeyLength)
	a.env.Random.Read(key)
	return key, true, nil
}

// readMasterKey reads the key from where the configuration says.
func readMasterKey(cfg *config.Config) ([]byte, error) {
	if cfg.MasterKey != "" {
		return store.ParseMasterKey(cfg.MasterKey.Reveal())
	}
	text, err := os.ReadFile(cfg.MasterKeyFile)
	if err != nil {
		return nil, fmt.Errorf("the master key cannot be read: %w", err)
	}
	key, err := store.ParseMasterKey(string(text))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", cfg.MasterKeyFile, err)
	}
	return key, nil
}

// retiredKeys reads the master keys that the present one replaced.
func retiredKeys(cfg *config.Config) (keys [][]byte, err error) {
	for text := range strings.SplitSeq(cfg.RetiredMasterKeys.Reveal(), ",") {
		if text = strings.TrimSpace(text); text == "" {
			continue
		}
		key, err := store.ParseMasterKey(text)
		if err != nil {
			return nil, fmt.Errorf("retired-master-keys: %w", err)
		}
		keys = append(keys, key)
	}
	return keys, nil
}

func databasePath(cfg *config.Config) string { return strings.TrimPrefix(cfg.Database, "sqlite:") }

// keepKey writes a new master key, for its owner only. It never writes over one.
func keepKey(path string, key []byte) error {
	text := base64.StdEncoding.EncodeToString(key) + "\n"
	if err := writeFile(path, text, false); err != nil {
		return fmt.Errorf("the master key cannot be kept: %w", err)
	}
	return nil
}

// checkKey opens something that was sealed, if there is anything.
func checkKey(ctx context.Context, s *store.Store) error {
	merchants, err := s.Merchants(ctx)
	if err != nil || len(merchants) == 0 {
		return err
	}
	if _, err := s.WebhookSecret(ctx, merchants[0].ID); errors.Is(err, store.ErrSealed) {
		return errors.New("the database was sealed with another master key: give this process the key of the one that made the database (its master.key, or PORTEIRA_MASTER_KEY)")
	} else if err != nil {
		return err
	}
	return nil
}

// writeFile writes a small file so that after a crash it is there whole or not
// at all: a file beside it is synced, takes its name, and the folder is synced.
func writeFile(path, text string, replace bool) (err error) {
	beside := path + ".new"
	f, err := os.OpenFile(beside, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if replace {
		err = os.Rename(beside, path)
	} else if err = os.Link(beside, path); err == nil { // fails where there is one
		err = os.Remove(beside)
	}
	if err != nil {
		return err
	}
	return store.SyncFolder(filepath.Dir(path))
}

// marker keeps the installation's beat outside the database, where a restored
// backup cannot turn it back. It implements jobs.Marker.
type marker struct {
	path         string // of the folder
	installation payment.ID
}

// Read returns the beat that was last written for this installation; 0 where
// none was.
func (m *marker) Read() (int64, error) {
	text, err := os.ReadFile(filepath.Join(m.path, markerFile))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("app: read beat: %w", err)
	}
	id, beat, ok := parseMark(string(text))
	if !ok {
		return 0, fmt.Errorf("app: %s is damaged: it tells whether the database is a restored backup; write \"%s 0\" and a line break into it if you are sure that it is not", filepath.Join(m.path, markerFile), m.installation)
	}
	if id != m.installation {
		return 0, nil // the folder served another database before
	}
	return beat, nil
}

// parseMark takes a mark apart. It is whole or damaged: of half a file, nobody
// can say which database it meant, or how far that had come.
func parseMark(text string) (id payment.ID, beat int64, ok bool) {
	line, rest, ended := strings.Cut(text, "\n")
	name, number, _ := strings.Cut(line, " ")
	id, err := payment.ParseID(name)
	if err != nil || !ended || rest != "" {
		return id, 0, false
	}
	beat, err = strconv.ParseInt(number, 10, 64)
	return id, beat, err == nil && beat >= 0
}

// Write keeps a beat, durably.
func (m *marker) Write(beat int64) error {
	err := writeFile(filepath.Join(m.path, markerFile), m.installation.String()+" "+strconv.FormatInt(beat, 10)+"\n", true)
	if err != nil {
		return fmt.Errorf("app: keep beat: %w", err)
	}
	return nil
}
