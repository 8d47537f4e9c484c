package store

import (
	"fmt"
	"time"

	"github.com/porteira/porteira/internal/db"
	"github.com/porteira/porteira/internal/effect"
)

// effectColumns keep an effect, without the result, which its noun has.
func effectColumns[T any](of func(*T) *effect.Effect) []column[T] {
	list := []column[T]{
		textColumn("step", func(v *T) *effect.State { return &of(v).State }),
		{
			Column: db.Column{Name: "flags", Kind: "bigint"},
			value:  func(v *T) any { return of(v).Flags() },
			dest:   func(v *T) any { return flagsDest{of(v)} },
		},
		intColumn("sends", func(v *T) *int { return &of(v).Sends }),
		intColumn("laters", func(v *T) *int { return &of(v).Laters }),
		intColumn("lookups", func(v *T) *int { return &of(v).Lookups }),
		timeColumn("first_at", func(v *T) *time.Time { return &of(v).FirstAt }),
		timeColumn("until_at", func(v *T) *time.Time { return &of(v).Until }),
		timeColumn("not_found_at", func(v *T) *time.Time { return &of(v).NotFoundAt }),
		timeColumn("next_at", func(v *T) *time.Time { return &of(v).NextAt }),
	}
	for i := range list {
		list[i].role = mutable
	}
	return list
}

type flagsDest struct{ to *effect.Effect }

// Scan implements [sql.Scanner].
func (d flagsDest) Scan(src any) error {
	bits := int64(0)
	err := intDest[int64]{&bits}.Scan(src)
	d.to.SetFlags(bits)
	return err
}

// releaseEffects is the SET of an UPDATE that releases the claims of a dead process: the event Died
// of package effect, due now. $1 is no process, $2 now.
var releaseEffects = fmt.Sprintf(`claimed_by = $1, next_at = $2, flags = CASE WHEN step = '%s' THEN flags & ~%d ELSE flags END,
	lookups = CASE WHEN step = '%s' THEN 0 ELSE lookups END, step = CASE step WHEN '%s' THEN '%s' WHEN '%s' THEN '%s' ELSE step END`,
	effect.Sending, effect.FlagAgain, effect.Sending, effect.Sending, effect.Unknown, effect.Asking, effect.Queued)
