package write

import (
	"errors"

	"github.com/porteira/porteira/internal/commit"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/store"
)

// ErrNodeDead refuses a claim by a node that was declared dead: no other node would
// release the claim.
var ErrNodeDead = errors.New("write: node was declared dead")

// ErrRestored refuses a claim on a database that was restored since this process's last
// heartbeat. The next heartbeat detects the restore.
var ErrRestored = errors.New("write: the database was restored")

// OpenCase opens a case in an operation of its own.
type OpenCase struct {
	Case store.Case // the caller chooses its id, unless Park is set
	Park bool       // the row that it names, which cannot be processed: see [store.Changes.Park]
}

// Merchant implements [Operation].
func (o OpenCase) Merchant() payment.ID { return o.Case.Merchant }

// Class implements [Operation].
func (o OpenCase) Class() commit.Class { return commit.Background }

// Needs implements [Operation].
func (o OpenCase) Needs(*store.Needs) {}

// Decide implements [Operation].
func (o OpenCase) Decide(_ *store.Loaded, c *store.Changes) error {
	if o.Park {
		c.Park(o.Case, 0)
	} else {
		c.OpenCase(o.Case)
	}
	return nil
}

// SetSetting writes a setting of the installation.
type SetSetting struct{ Name, Value string }

// Merchant implements [Operation].
func (o SetSetting) Merchant() payment.ID { return payment.ID{} }

// Class implements [Operation].
func (o SetSetting) Class() commit.Class { return commit.Background }

// Needs implements [Operation].
func (o SetSetting) Needs(*store.Needs) {}

// Decide implements [Operation].
func (o SetSetting) Decide(_ *store.Loaded, c *store.Changes) error {
	c.SetSetting(o.Name, o.Value)
	return nil
}
