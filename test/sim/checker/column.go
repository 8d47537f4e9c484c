package checker

import (
	"encoding/hex"
	"errors"
	"strconv"
	"strings"
)

// columns declares the columns of a table once, for two purposes: to list what the
// triggers of the table write into a line of the log, and to read a line into the
// fields of a row. Each table has a method that visits its columns, such as
//
//	c.fixed.text("url", &r.url)
//	c.mutable.num("attempts", &r.attempts)
//
// The section of a column decides in which lines it is. A line has no column names:
// both purposes visit the columns in the same order.
type columns struct {
	key     section // in every line, beside the merchant and the id
	fixed   section // never written again; in the line of a new row
	mutable section // in the line of a new or changed row

	// For listing.
	engine *engine // nil while a line is read
	names  []string
	values []string // SQL expressions
	blob   string   // column whose bytes are stored beside the values, or ""

	// For reading.
	line *line
	rest string
	end  bool // all values are read
	err  error
}

func newColumns() *columns {
	c := &columns{end: true}
	c.key.columns, c.fixed.columns, c.mutable.columns = c, c, c
	return c
}

// section is a group of columns that are in the same lines.
type section struct {
	*columns

	active bool // its columns are in the line
}

// of starts a line of an operation.
func (c *columns) of(op operation) {
	c.key.active = true
	c.mutable.active = op == rowAdded || op == rowChanged
	c.fixed.active = op == rowAdded
}

// read starts to read a line.
func (c *columns) read(l *line) *columns {
	c.checkEnd()
	c.of(l.op)
	c.line, c.rest, c.end = l, l.fields, l.fields == ""
	return c
}

// errLine means that a line does not have the values of its table's columns.
var errLine = errors.New("checker: a line of the log does not fit the columns of its table")

// checkEnd checks that the last line was read completely.
func (c *columns) checkEnd() {
	if !c.end && c.err == nil {
		c.err = errLine
	}
}

// next is the next value of the line.
func (c *columns) next() string {
	if c.end {
		c.err = errLine
	}
	value, rest, more := strings.Cut(c.rest, separator)
	c.rest, c.end = rest, !more
	return value
}

// add lists a column.
func (c *columns) add(name, expression string) {
	c.names, c.values = append(c.names, name), append(c.values, expression)
}

// num is a column of an integer: cents, microseconds or a count.
func (s *section) num(name string, field *int64) {
	if s.active && s.engine != nil {
		s.add(name, s.engine.row+name)
	} else if s.active {
		s.readNum(field)
	}
}

func (c *columns) readNum(field *int64) {
	n, err := strconv.ParseInt(c.next(), 10, 64)
	if err != nil {
		c.err = errLine
	}
	*field = n
}

// flag is a column of 0 or 1.
func (s *section) flag(name string, field *bool) {
	if s.active && s.engine != nil {
		s.add(name, s.engine.row+name)
	} else if s.active {
		*field = s.next() != "0"
	}
}

// text is a column of a text without [separator].
func (s *section) text(name string, field *string) {
	if s.active && s.engine != nil {
		s.add(name, s.engine.row+name)
	} else if s.active {
		*field = s.next()
	}
}

// id is a column of an id, or of no bytes, which is the zero id.
func (s *section) id(name string, field *rowID) {
	if s.active && s.engine != nil {
		s.add(name, s.engine.hex(s.engine.row+name))
	} else if s.active {
		b, err := hex.DecodeString(s.next())
		if err != nil {
			s.err = errLine
		}
		*field = rowIDOf(b)
	}
}

// length is how long the value of a column is.
func (s *section) length(name string, field *int64) {
	if s.active && s.engine != nil {
		s.add(name, "length("+s.engine.row+name+")")
	} else if s.active {
		s.readNum(field)
	}
}

// bytes is the one column of a table that is stored beside the values.
func (s *section) bytes(name string, field *[]byte) {
	if s.active && s.engine != nil {
		s.names, s.blob = append(s.names, name), s.engine.row+name
	} else if s.active {
		*field = s.line.blob
	}
}
