package ledger

import (
	"slices"
	"strings"
)

// shape is the accounts that the entries of a recipe may take from and give to.
type shape struct{ from, to []Account }

// shapes are those that the recipes describe.
var shapes = func() map[Kind]shape {
	all := map[Kind]shape{}
	for i := range Recipes {
		from, to, _ := strings.Cut(Recipes[i].Moves, "→")
		all[Recipes[i].Kind] = shape{accountsIn(from), accountsIn(to)}
	}
	return all
}()

// accountsIn are the accounts that a text names, an account at a processor without its name.
func accountsIn(text string) (list []Account) {
	words := strings.FieldsFunc(text, func(r rune) bool { return r != '_' && (r < 'a' || r > 'z') })
	for _, word := range words {
		if a := Account(word); a.Known() {
			list = append(list, a)
		} else if word+":" == clearingPrefix {
			list = append(list, clearingPrefix)
		}
	}
	return list
}

// From lists the accounts that entries of the kind may take money from. Accounts at processors are
// named by [Account.Class].
func (k Kind) From() []Account { return shapes[k].from }

// To lists the accounts that entries of the kind may give money to, named as by From.
func (k Kind) To() []Account { return shapes[k].to }

// Posts reports whether an entry of the kind may have a posting.
func (k Kind) Posts(p Posting) bool {
	of := shapes[k].to
	if p.Amount < 0 {
		of = shapes[k].from
	}
	return slices.Contains(of, p.Account.Class())
}
