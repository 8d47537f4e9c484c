package cli

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"strings"

	"github.com/porteira/porteira/internal/actor"
	"github.com/porteira/porteira/internal/app"
)

// author is who runs a command that changes something, and why.
type author struct {
	As     string `aliases:"actor" help:"Your name, for the record (default os: and your login name)." placeholder:"NAME"`
	Reason string `help:"The reason, for the record." placeholder:"TEXT"`
}

// author is the author that the record names.
func (c *author) author() (actor.Author, error) {
	if c.As != "" {
		return c.named()
	}
	who, err := actor.Login(loginName())
	if err != nil {
		return actor.Author{}, err
	}
	return actor.NewAuthor(who, c.Reason)
}

// named is the author of a decision about money, which does not take the login name: several people
// may share one.
func (c *author) named() (actor.Author, error) {
	if strings.TrimSpace(c.As) == "" {
		return actor.Author{}, configError{errors.New("name yourself with --as NAME: a decision about money is recorded with the name of a person, not of a login")}
	}
	who, err := actor.Operator(c.As)
	if err != nil {
		return actor.Author{}, err
	}
	return actor.NewAuthor(who, c.Reason)
}

// change runs work with access to the database, as an author.
func (r *runner) change(s *settings, c *author, work func(a *app.Admin) error) error {
	by, err := c.author()
	if err != nil {
		return err
	}
	return r.changeAs(s, by, work)
}

// changeAs is change as an author that was checked before.
func (r *runner) changeAs(s *settings, by actor.Author, work func(a *app.Admin) error) error {
	return r.admin(s, func(a *app.Admin) error { return work(a.As(by)) })
}

// loginName is the name of the operating system's user, or the user's number if it has no name, as in a
// container.
func loginName() string {
	u, err := user.Current()
	if err != nil || u.Username == "" {
		return fmt.Sprintf("uid %d", os.Getuid())
	}
	return u.Username
}
