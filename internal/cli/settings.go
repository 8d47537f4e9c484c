package cli

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/porteira/porteira/internal/config"
)

// settings are the flags of a mode, made from the table of options.
type settings struct {
	kong.Plugins `json:"-"`

	options []*config.Option
	values  reflect.Value
}

// settingsGroup is the title of these flags in the help of a command, below its own.
const settingsGroup = "Settings:"

// newSettings makes a flag of every option of a mode except secrets, because other users
// of a machine can see flags.
func newSettings(m config.Mode) settings {
	s := settings{}
	var fields []reflect.StructField
	for _, o := range config.Of(m) {
		if o.Secret {
			continue
		}
		s.options = append(s.options, o)
		kind, help := reflect.TypeFor[*string](), strings.ToUpper(o.Meaning[:1])+o.Meaning[1:]
		if o.Kind == config.KindSwitch {
			kind = reflect.TypeFor[*bool]()
		}
		if text := o.DefaultFor(m); text != "" {
			help += " (default " + text + ")"
		}
		fields = append(fields, reflect.StructField{
			Name: fmt.Sprintf("Option%d", len(fields)), Type: kind,
			Tag: reflect.StructTag(fmt.Sprintf("name:%q help:%q placeholder:%q group:%q", o.Name, help+".", o.Kind, settingsGroup)),
		})
	}
	pointer := reflect.New(reflect.StructOf(fields))
	s.values = pointer.Elem()
	s.Plugins = kong.Plugins{pointer.Interface()}
	return s
}

// given returns the flags that were set.
func (s *settings) given() map[string]string {
	flags := map[string]string{}
	for i, o := range s.options {
		switch v := s.values.Field(i).Interface().(type) {
		case *string:
			if v != nil {
				flags[o.Name] = *v
			}
		case *bool:
			if v != nil {
				flags[o.Name] = strconv.FormatBool(*v)
			}
		}
	}
	return flags
}

func newCommands() *commands {
	admin := func() settings { return newSettings(config.Admin) }
	return &commands{
		Dev:        devCommand{settings: newSettings(config.Dev)},
		Serve:      serveCommand{settings: newSettings(config.Serve)},
		Bank:       bankCommand{settings: newSettings(config.Bank)},
		Migrate:    migrateCommand{settings: admin()},
		Merchant:   merchantCommand{settings: admin()},
		Credential: credentialCommand{settings: admin()},
		Account:    accountCommand{settings: admin()},
		Route:      routeCommand{settings: admin()},
		Limit:      limitCommand{settings: admin()},
		Price:      priceCommand{settings: admin()},
		Payin:      payinCommand{settings: admin()},
		Payout:     payoutCommand{settings: admin()},
		Refund:     refundCommand{settings: admin()},
		Dispute:    disputeCommand{settings: admin()},
		Balance:    balanceCommand{settings: admin()},
		Event:      eventCommand{settings: admin()},
		Delivery:   deliveryCommand{settings: admin()},
		Case:       caseCommand{settings: admin()},
		Find:       findCommand{settings: admin()},
		Audit:      auditCommand{settings: admin()},
		Verify:     verifyCommand{settings: admin()},
		Doctor:     doctorCommand{settings: newSettings(config.Serve)},
		Backup:     backupCommand{settings: admin()},
		Rekey:      rekeyCommand{settings: admin()},
	}
}
