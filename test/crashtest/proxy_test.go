package main

import (
	"bufio"
	"errors"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/webhook"
)

// query is a simple query of PostgreSQL's protocol.
func query(text string) []byte {
	return append([]byte{'Q', 0, 0, 0, byte(5 + len(text))}, append([]byte(text), 0)...)
}

// echoServer accepts one connection, records its messages, and answers each with
// itself.
type echoServer struct {
	listener net.Listener
	done     sync.WaitGroup
	received []string
}

func newEchoServer(t *testing.T) *echoServer {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &echoServer{listener: l}
	s.done.Go(func() {
		defer func() { _ = l.Close() }()
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer func() { _ = conn.Close() }()
		from := bufio.NewReader(conn)
		for kind := 0; ; kind = 1 {
			m, err := readMessage(from, kind)
			if err != nil {
				return
			}
			if kind == 0 {
				continue
			}
			s.received = append(s.received, strings.TrimRight(string(m[5:]), "\x00"))
			if _, err := conn.Write(m); err != nil {
				return
			}
		}
	})
	return s
}

// At each cut the server has received exactly the messages before it, and the client
// exactly their answers.
func TestProxyCuts(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		cut                cut
		after              int
		received, answered []string
	}{
		{cutNever, 0, []string{"begin", "commit", "select"}, []string{"begin", "commit", "select"}},
		{cutBefore, 0, []string{"begin"}, []string{"begin"}},
		{cutAt, 0, []string{"begin", "commit"}, []string{"begin"}},
		{cutAnswered, 0, []string{"begin", "commit"}, []string{"begin"}},
		{cutBefore, 1, []string{"begin", "commit", "select"}, []string{"begin", "commit", "select"}},
		{cutBetween, 0, nil, nil},
		{cutBetween, 1, []string{"begin"}, nil},
	} {
		t.Run(string(test.cut), func(t *testing.T) {
			t.Parallel()
			s := newEchoServer(t)
			var cuts []cut
			p := &proxy{listen: "127.0.0.1:0", server: s.listener.Addr().String(), counted: func(c cut) { cuts = append(cuts, c) }}
			if err := p.start(t.Context()); err != nil {
				t.Fatal(err)
			}
			conn, err := net.Dial("tcp4", p.listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			p.plan(test.cut, test.after)
			if _, err := conn.Write([]byte{0, 0, 0, 8, 0, 3, 0, 0}); err != nil {
				t.Fatal(err)
			}
			var answered []string
			from := bufio.NewReader(conn)
			for _, text := range []string{"begin", "commit", "select"} {
				if _, err := conn.Write(query(text)); err != nil {
					break
				}
				m, err := readMessage(from, 1)
				if err != nil {
					break
				}
				answered = append(answered, strings.TrimRight(string(m[5:]), "\x00"))
			}
			_ = conn.Close()
			p.close()
			s.done.Wait()
			if !slices.Equal(answered, test.answered) || test.cut != cutAt && !slices.Equal(s.received, test.received) {
				t.Errorf("after %d: the server got %q, the client %q; want %q and %q", test.after, s.received, answered, test.received, test.answered)
			}
			if fired := test.cut != cutNever && test.after < 1 || test.cut == cutBetween; fired != (len(cuts) == 1) {
				t.Errorf("after %d: cuts: %q", test.after, cuts)
			}
		})
	}
}

func TestMessagesOfImpossibleLength(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"Q\x00\x00\x00\x03", "Q\xff\xff\xff\xff"} {
		if _, err := readMessage(bufio.NewReader(strings.NewReader(text)), 1); !errors.Is(err, errMessage) {
			t.Errorf("%q: %v", text, err)
		}
	}
	if _, err := readMessage(bufio.NewReader(strings.NewReader("Q\x00\x00\x00\x05")), 1); !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("a truncated message: %v", err)
	}
}

// The receivers' own check of signatures accepts the gateway's signatures and nothing
// else.
func TestSignatures(t *testing.T) {
	t.Parallel()
	secret, err := webhook.ParseSecret(webhookSecret)
	if err != nil {
		t.Fatal(err)
	}
	now := clock.Now()
	header := map[string][]string{
		"Webhook-Id": {"evt_1"}, "Webhook-Timestamp": {"x"},
		"Webhook-Signature": {webhook.Sign([]webhook.Secret{webhook.NewSecret(env.SystemRandom()), secret}, "evt_1", now, []byte("{}"))},
	}
	if signed(header, []byte("{}"), now) {
		t.Error("a time that is no number is accepted")
	}
	header["Webhook-Timestamp"] = []string{strconv.FormatInt(now.Unix(), 10)}
	if !signed(header, []byte("{}"), now) {
		t.Error("a valid signature is refused")
	}
	if signed(header, []byte("{ }"), now) || signed(header, []byte("{}"), now.Add(signatureAge*2)) {
		t.Error("another body, or an old signature, is accepted")
	}
	header["Webhook-Id"] = []string{"evt_2"}
	if signed(header, []byte("{}"), now) {
		t.Error("another id is accepted")
	}
}
