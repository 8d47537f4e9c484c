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

	"github.com/porteira/porteira/internal/cluster"
	"github.com/porteira/porteira/internal/config"
	"github.com/porteira/porteira/internal/db"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/store"
)

// Names of files in the data folder.
const (
	journalFile = "bank.journal"
	markerFile  = "installation.epoch"
)

// makeFolder makes the data folder, readable by its owner only.
func makeFolder(path string) error {
	if err := db.MakeFolder(path); err != nil {
		return fmt.Errorf("cannot create the data folder: %w: choose another with --data", err)
	}
	return nil
}

// masterKey reads the key. In development, if there is neither key nor database, it
// generates one. It stores that before the database is created, or a start that is
// interrupted would leave a database without its key. The database of a server may exist
// and be sealed with another key: a fresh key is stored by the caller after it has checked that.
func (a *App) masterKey() (key []byte, fresh bool, err error) {
	key, err = readMasterKey(a.cfg)
	if !errors.Is(err, fs.ErrNotExist) {
		return key, false, err
	}
	if a.cfg.Mode != config.Dev {
		return nil, false, fmt.Errorf("the master key is missing: put it into %s, or set PORTEIRA_MASTER_KEY", a.cfg.MasterKeyFile)
	}
	if !db.IsPostgres(a.cfg.Database) {
		if _, err := os.Stat(databasePath(a.cfg)); err == nil {
			return nil, false, fmt.Errorf("database %s exists, but its master key %s is missing; secrets and personal data cannot be read without it: restore the key from its copy, or move the database away to start afresh",
				databasePath(a.cfg), a.cfg.MasterKeyFile)
		}
	}
	key = make([]byte, db.MasterKeyLength)
	a.env.Random.Read(key)
	if !db.IsPostgres(a.cfg.Database) {
		return key, false, keepKey(a.cfg.MasterKeyFile, key)
	}
	return key, true, nil
}

// readMasterKey reads the key from the configuration or from its file.
func readMasterKey(cfg *config.Config) ([]byte, error) {
	if cfg.MasterKey != "" {
		return db.ParseMasterKey(cfg.MasterKey.Reveal())
	}
	text, err := os.ReadFile(cfg.MasterKeyFile)
	if err != nil {
		return nil, fmt.Errorf("cannot read the master key: %w", err)
	}
	key, err := db.ParseMasterKey(string(text))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", cfg.MasterKeyFile, err)
	}
	return key, nil
}

// retiredKeys parses the former master keys.
func retiredKeys(cfg *config.Config) (keys [][]byte, err error) {
	for text := range strings.SplitSeq(cfg.RetiredMasterKeys.Reveal(), ",") {
		if text = strings.TrimSpace(text); text == "" {
			continue
		}
		key, err := db.ParseMasterKey(text)
		if err != nil {
			return nil, fmt.Errorf("retired-master-keys: %w", err)
		}
		keys = append(keys, key)
	}
	return keys, nil
}

func databasePath(cfg *config.Config) string { return strings.TrimPrefix(cfg.Database, "sqlite:") }

// keepKey writes a new master key, readable by its owner only. It never overwrites one.
func keepKey(path string, key []byte) error {
	text := base64.StdEncoding.EncodeToString(key) + "\n"
	if err := writeFile(path, text, false); err != nil {
		return fmt.Errorf("cannot store the master key: %w", err)
	}
	return nil
}

// checkKey checks that the master key opens the first merchant's sealed secret, if
// there is a merchant.
func checkKey(ctx context.Context, s *store.Store) error {
	other := errors.New("the database was sealed with another master key: use the key of the process that created the database (its master.key, or PORTEIRA_MASTER_KEY). If you have changed the key, put the old one into retired-master-keys until porteira rekey has run")
	if s.KeyError() != nil {
		return other
	}
	merchants, err := s.Merchants(ctx)
	if err != nil || len(merchants) == 0 {
		return err
	}
	if _, err := s.WebhookSecret(ctx, merchants[0].ID); errors.Is(err, db.ErrSealed) {
		return other
	} else if err != nil {
		return err
	}
	return nil
}

// writeFile writes a small file atomically: it syncs a temporary file in the same
// folder, renames it, and syncs the folder.
func writeFile(path, text string, replace bool) (err error) {
	temporary := path + ".new"
	f, err := CreateFile(temporary)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if replace {
		err = os.Rename(temporary, path)
	} else if err = os.Link(temporary, path); err == nil { // fails if path exists
		err = os.Remove(temporary)
	}
	if err != nil {
		return err
	}
	return db.SyncFolder(filepath.Dir(path))
}

// CreateFile replaces a file, or a link by that name, and opens it for writing. It writes to no file
// that a link names.
func CreateFile(path string) (*os.File, error) {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	return os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
}

// marker stores the installation's epoch in the data folder: restoring a backup of
// the database does not reset it. It implements [cluster.Marker].
type marker struct {
	path         string // of the folder
	installation payment.ID
}

// Read returns the mark last written for this installation; zero if there is none, or if it is
// damaged: then the next start is cold.
func (m *marker) Read() (cluster.Mark, error) {
	text, err := os.ReadFile(filepath.Join(m.path, markerFile))
	if errors.Is(err, fs.ErrNotExist) {
		return cluster.Mark{}, nil
	}
	if err != nil {
		return cluster.Mark{}, fmt.Errorf("app: read epoch: %w", err)
	}
	id, mark, ok := parseMark(string(text))
	if !ok || id != m.installation { // the folder was used for another database
		return cluster.Mark{}, nil
	}
	return mark, nil
}

// parseMark parses the marker file: the installation's id, the epoch and, after a clean stop, its
// token, separated by spaces, and a line break. ok is false if anything is missing: a partly written
// epoch would look like an older one.
func parseMark(text string) (id payment.ID, m cluster.Mark, ok bool) {
	line, rest, ended := strings.Cut(text, "\n")
	words := strings.Split(line, " ")
	if !ended || rest != "" || len(words) < 2 || len(words) > 3 {
		return id, m, false
	}
	id, err := payment.ParseID(words[0])
	if err != nil {
		return id, m, false
	}
	if len(words) == 3 {
		m.Stop = words[2]
	}
	m.Epoch, err = strconv.ParseInt(words[1], 10, 64)
	return id, m, err == nil && m.Epoch >= 0
}

// Write stores the mark durably.
func (m *marker) Write(mark cluster.Mark) error {
	text := m.installation.String() + " " + strconv.FormatInt(mark.Epoch, 10)
	if mark.Stop != "" {
		text += " " + mark.Stop
	}
	if err := writeFile(filepath.Join(m.path, markerFile), text+"\n", true); err != nil {
		return fmt.Errorf("app: write epoch: %w", err)
	}
	return nil
}
