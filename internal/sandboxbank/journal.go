package sandboxbank

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"sync"
)

// The bank's journal is a text file. Its first line is its header; every other
// line is one change of the ledger:
//
//	checksum number durable {record}
//
// The checksum is CRC-32C, in eight hex digits, over the rest of the line.
// Numbers increase by one from 1. "durable" is the number of the last line known
// to be on disk when this line was written. It distinguishes a torn tail, which
// is cut, from damage to acknowledged lines, which is reported.
const journalHeader = "porteira-bank-journal 1\n"

var (
	// ErrJournalForeign means that the file is not a bank's journal.
	ErrJournalForeign = errors.New("sandboxbank: this file is not a bank's journal")
	// ErrJournalDamaged means that an acknowledged line cannot be read. The bank
	// does not open: restore the file from a backup.
	ErrJournalDamaged = errors.New("sandboxbank: the bank's journal is damaged")
	// ErrJournalLocked means that another bank has the journal open.
	ErrJournalLocked = errors.New("sandboxbank: another bank uses this journal")
	// errClosed means that the bank was closed.
	errClosed = errors.New("sandboxbank: the bank is closed")
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// errDisk means that lines cannot be written now. They are kept, and the next wait
// writes them again.
var errDisk = errors.New("sandboxbank: the journal cannot be written")

// journalFile is the file of a journal.
type journalFile interface {
	io.WriterAt
	Sync() error
	Close() error
}

// journal appends lines. The first caller that waits for a line writes and syncs
// all pending lines; concurrent callers share the next sync. So many changes cost
// one fsync, without a separate goroutine.
type journal struct {
	mu      sync.Mutex
	synced  sync.Cond // durable or err changed
	file    journalFile
	pending []byte // lines not yet on disk
	spare   []byte
	end     int64  // of the lines on disk, in bytes
	last    uint64 // number of the last line appended
	durable uint64 // number of the last line on disk
	writing bool
	closed  bool
	err     error  // of the last attempt; nil after one that succeeded
	failed  uint64 // attempts
}

// newJournal continues a file of end bytes, whose last line has the number
// last.
func newJournal(file journalFile, end int64, last uint64) *journal {
	j := &journal{file: file, end: end, last: last, durable: last}
	j.synced.L = &j.mu
	return j
}

// append adds a line with body and returns its number. It is not yet on disk: see
// wait.
func (j *journal) append(body []byte) uint64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.last++
	if j.file == nil {
		j.durable = j.last
		return j.last
	}
	j.pending = appendLine(j.pending, j.last, j.durable, body)
	return j.last
}

// latest is the number of the last line appended.
func (j *journal) latest() uint64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.last
}

// wait returns once line n, and all before it, are on disk. After an error they
// may be on disk or not, and must not be acknowledged; the next wait writes
// them again.
func (j *journal) wait(n uint64) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	for failed := j.failed; j.durable < n; {
		switch {
		case j.closed:
			return errClosed
		case j.failed != failed:
			return j.err
		case j.writing:
			j.synced.Wait()
		default:
			j.flush()
		}
	}
	return nil
}

// retry writes the lines of a failed attempt again; it returns nil if the last
// attempt did not fail. It is called before each change, so that the ledger does
// not run ahead of a disk that cannot be written.
func (j *journal) retry() error {
	j.mu.Lock()
	err, last := j.err, j.last
	j.mu.Unlock()
	if err == nil {
		return nil
	}
	return j.wait(last)
}

// flush writes and syncs the pending lines. The lock is released only during the
// write. Failed lines are written again at the same offset, with later ones
// behind them: a failed fsync may have dropped its pages, and the next one would
// succeed without them.
func (j *journal) flush() {
	lines, upTo := j.pending, j.last
	j.pending, j.spare = j.spare[:0], nil
	j.writing = true
	j.mu.Unlock()
	_, err := j.file.WriteAt(lines, j.end)
	if err == nil {
		err = j.file.Sync()
	}
	j.mu.Lock()
	j.writing = false
	if err != nil {
		j.pending = append(lines, j.pending...)
		j.err = fmt.Errorf("%w: %w", errDisk, err)
		j.failed++
	} else {
		j.spare = lines[:0]
		j.end += int64(len(lines))
		j.durable, j.err = upTo, nil
	}
	j.synced.Broadcast()
}

// close writes the pending lines and closes the file. Later waits fail.
func (j *journal) close() error {
	err := j.wait(j.latest())
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.file == nil || j.closed {
		return nil
	}
	for j.writing {
		j.synced.Wait()
	}
	j.closed = true
	return errors.Join(err, j.file.Close())
}

// openJournal opens or creates the journal at path, locks it, replays its
// records in order, and cuts off a torn tail.
func openJournal(path string, replay func(body []byte) error) (*journal, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("sandboxbank: open journal: %w", err)
	}
	end, last, err := prepareJournal(file, replay)
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return newJournal(file, end, last), nil
}

// prepareJournal prepares the file for more lines, and returns their offset and
// the number of its last line.
func prepareJournal(file *os.File, replay func(body []byte) error) (end int64, last uint64, err error) {
	if err := lockFile(file); err != nil {
		return 0, 0, err
	}
	read, err := readJournal(file, replay)
	if err != nil {
		return 0, 0, err
	}
	info, err := file.Stat()
	if err != nil {
		return 0, 0, fmt.Errorf("sandboxbank: read journal: %w", err)
	}
	if read.end == 0 {
		if err := writeHeader(file); err != nil {
			return 0, 0, fmt.Errorf("sandboxbank: begin journal: %w", err)
		}
		return int64(len(journalHeader)), 0, nil
	}
	if info.Size() > read.end {
		if err := errors.Join(file.Truncate(read.end), file.Sync()); err != nil {
			return 0, 0, fmt.Errorf("sandboxbank: cut torn end of journal: %w", err)
		}
	}
	if err := rewrite(file, read.confirmed, read.end); err != nil {
		return 0, 0, fmt.Errorf("sandboxbank: sync end of journal: %w", err)
	}
	return read.end, read.last, nil
}

// rewrite writes a part of the file again and syncs it. It can be read, but may
// not be on disk: after a failed sync the system keeps the pages in its cache and
// considers them written.
func rewrite(file *os.File, from, to int64) error {
	part := make([]byte, to-from)
	if _, err := file.ReadAt(part, from); err != nil {
		return err
	}
	if _, err := file.WriteAt(part, from); err != nil {
		return err
	}
	return file.Sync()
}

// writeHeader begins a journal; the folder is synced too, or a power cut could
// lose the file.
func writeHeader(file *os.File) error {
	if err := file.Truncate(0); err != nil {
		return err
	}
	if _, err := file.WriteAt([]byte(journalHeader), 0); err != nil {
		return err
	}
	if err := file.Sync(); err != nil {
		return err
	}
	folder, err := os.Open(filepath.Dir(file.Name()))
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}

// extent is the readable part of a journal.
type extent struct {
	end  int64  // offset of the next line; 0 without a header
	last uint64 // number of the last line
	// confirmed is the end of the lines that a later line names as durable.
	confirmed int64
}

// readJournal replays every complete line.
func readJournal(r io.Reader, replay func(body []byte) error) (extent, error) {
	in := bufio.NewReaderSize(r, 1<<20)
	header, err := in.Peek(len(journalHeader))
	if err != nil && !errors.Is(err, io.EOF) {
		return extent{}, fmt.Errorf("sandboxbank: read journal: %w", err)
	}
	if len(header) < len(journalHeader) && bytes.HasPrefix([]byte(journalHeader), header) {
		return extent{}, nil
	}
	if string(header) != journalHeader {
		return extent{}, ErrJournalForeign
	}
	_, _ = in.Discard(len(journalHeader)) // peeked at just now
	read := extent{end: int64(len(journalHeader)), confirmed: int64(len(journalHeader))}
	var unconfirmed []int64 // lengths of the lines behind the confirmed ones
	torn := false
	for {
		line, err := in.ReadBytes('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return extent{}, fmt.Errorf("sandboxbank: read journal: %w", err)
		}
		if len(line) == 0 {
			return read, nil
		}
		number, durable, body, ok := parseLine(line)
		if torn = torn || !ok || number != read.last+1; torn {
			if !ok {
				durable, ok = hiddenLine(line)
			}
			if ok && durable > read.last {
				return extent{}, fmt.Errorf("%w at line %d", ErrJournalDamaged, read.last+1)
			}
			continue
		}
		if err := replay(body); err != nil {
			return extent{}, fmt.Errorf("%w at line %d: %w", ErrJournalDamaged, number, err)
		}
		for len(unconfirmed) > 0 && read.last-uint64(len(unconfirmed)) < durable {
			read.confirmed += unconfirmed[0]
			unconfirmed = unconfirmed[1:]
		}
		unconfirmed = append(unconfirmed, int64(len(line)))
		read.last = number
		read.end += int64(len(line))
	}
}

// hiddenLine finds a complete line at the end of a damaged one: if the line break
// is damaged, two lines are read as one.
func hiddenLine(line []byte) (durable uint64, ok bool) {
	for i := range line {
		if _, durable, _, ok = parseLine(line[i:]); ok {
			return durable, true
		}
	}
	return 0, false
}

const (
	checksumDigits = 8
	hexDigits      = "0123456789abcdef"
)

func appendLine(out []byte, number, durable uint64, body []byte) []byte {
	start := len(out)
	out = append(out, "00000000 "...)
	out = strconv.AppendUint(out, number, 10)
	out = append(out, ' ')
	out = strconv.AppendUint(out, durable, 10)
	out = append(out, ' ')
	out = append(out, body...)
	sum := crc32.Checksum(out[start+checksumDigits+1:], castagnoli)
	for i := range checksumDigits {
		out[start+i] = hexDigits[sum>>(28-4*i)&0xf]
	}
	return append(out, '\n')
}

// parseLine splits a line; ok is false unless it is complete and its checksum
// right.
func parseLine(line []byte) (number, durable uint64, body []byte, ok bool) {
	const covered = checksumDigits + 1
	if len(line) <= covered || line[len(line)-1] != '\n' || line[checksumDigits] != ' ' {
		return 0, 0, nil, false
	}
	rest := line[covered : len(line)-1]
	sum, err := strconv.ParseUint(string(line[:checksumDigits]), 16, 32)
	if err != nil || uint32(sum) != crc32.Checksum(rest, castagnoli) {
		return 0, 0, nil, false
	}
	first, rest, ok1 := bytes.Cut(rest, []byte{' '})
	second, body, ok2 := bytes.Cut(rest, []byte{' '})
	number, err1 := strconv.ParseUint(string(first), 10, 64)
	durable, err2 := strconv.ParseUint(string(second), 10, 64)
	return number, durable, body, ok1 && ok2 && err1 == nil && err2 == nil
}
