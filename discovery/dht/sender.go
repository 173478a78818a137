package dht

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"
	pb "github.com/libp2p/go-libp2p-kad-dht/pb"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

const (
	answerTimeout = 4 * time.Second // for an answer
	minBackoff    = time.Minute     // after a timeout or an invalid answer; doubles
	maxBackoff    = 10 * time.Minute
	maxBackoffs   = 1024
)

var errClosed = errors.New("the DHT is closed")

// sender sends the library's messages to servers, each on a stream of its own, and validates
// answers. The library's own sender does not, and an answer without a record crashes it.
type sender struct {
	host      host.Host
	protocols []protocol.ID
	timeout   time.Duration
	isKnown   func(peer.ID) bool // without back-off
	requests  atomic.Uint64

	ctx    context.Context // until it is closed
	cancel context.CancelFunc

	mu       sync.Mutex
	backoffs *simplelru.LRU[peer.ID, backoff]
	closed   bool
	busy     sync.WaitGroup
}

// backoff is how long a peer is not asked, and until when.
type backoff struct {
	until time.Time
	pause time.Duration
}

var _ pb.MessageSenderWithDisconnect = (*sender)(nil)

func newSender(h host.Host, protocols []protocol.ID, isKnown func(peer.ID) bool) *sender {
	backoffs, err := simplelru.NewLRU[peer.ID, backoff](maxBackoffs, nil)
	if err != nil {
		panic(err) // the size is positive
	}
	s := &sender{host: h, protocols: protocols, timeout: answerTimeout, isKnown: isKnown, backoffs: backoffs}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s
}

// close cancels all requests and waits for them.
func (s *sender) close() {
	s.cancel()
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.busy.Wait()
}

// spawn runs a goroutine that close waits for, or returns false after close.
func (s *sender) spawn(f func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.busy.Go(f)
	}
	return !s.closed
}

// SendRequest sends a message and returns the answer.
func (s *sender) SendRequest(ctx context.Context, to peer.ID, m *pb.Message) (a *pb.Message, err error) {
	if m.Type == pb.Message_PUT_VALUE && string(m.Key) != keyOf(s.host.ID()) {
		return nil, errors.New("only the site puts its record") // the library corrects those of others
	}
	err = s.exchange(ctx, to, m, func(r *bufio.Reader) error {
		b, err := readMessage(r)
		if err == nil {
			a, err = decodeAnswer(m, b, s.host.ID())
		}
		return err
	})
	return a, err
}

// SendMessage sends a message and returns when the server has read it.
func (s *sender) SendMessage(ctx context.Context, to peer.ID, m *pb.Message) error {
	return s.exchange(ctx, to, m, func(r *bufio.Reader) error {
		if _, err := r.ReadByte(); err != io.EOF {
			return fmt.Errorf("the server does not store it (%w)", err)
		}
		return nil
	})
}

// OnDisconnect does nothing: each message has a stream of its own.
func (*sender) OnDisconnect(context.Context, peer.ID) {}

// exchange sends a message and calls read for the answer.
func (s *sender) exchange(ctx context.Context, to peer.ID, m *pb.Message, read func(*bufio.Reader) error) error {
	if err := s.acquire(to); err != nil {
		return err
	}
	defer s.busy.Done()
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	defer context.AfterFunc(s.ctx, cancel)()
	if s.host.Network().Connectedness(to) != network.Connected { // a stream would wait for a hole to be punched
		if err := s.host.Connect(ctx, peer.AddrInfo{ID: to}); err != nil {
			return err
		}
	}
	s.requests.Add(1)
	start := time.Now()
	stream, err := s.host.NewStream(network.WithNoDial(ctx, "dht"), to, s.protocols...)
	if err != nil {
		return err
	}
	defer stream.Reset()                                      // after the end of it that is nothing
	defer context.AfterFunc(ctx, func() { stream.Reset() })() // which ends reading
	if err := writeMessage(stream, m); err != nil {
		return err
	}
	if err := read(bufio.NewReader(stream)); err != nil {
		if ctx.Err() == nil || time.Since(start) >= s.timeout { // it is not that nobody waits any more
			s.backOff(to)
		}
		return err
	}
	s.host.Peerstore().RecordLatency(to, time.Since(start))
	s.mu.Lock()
	defer s.mu.Unlock()
	s.backoffs.Remove(to)
	return nil
}

// acquire counts a request, or fails after close and during a peer's back-off.
func (s *sender) acquire(to peer.ID) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return errClosed
	}
	if b, _ := s.backoffs.Peek(to); time.Now().Before(b.until) {
		return errors.New("the server did not answer well a moment ago")
	}
	s.busy.Add(1)
	return nil
}

// backOff starts a peer's back-off. Known servers have none: there may be no others, and this
// host may be the slow one.
func (s *sender) backOff(who peer.ID) {
	if s.isKnown(who) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	was, _ := s.backoffs.Peek(who)
	pause := min(max(2*was.pause, minBackoff), maxBackoff)
	s.backoffs.Add(who, backoff{time.Now().Add(pause), pause})
}

func writeMessage(stream network.Stream, m *pb.Message) error {
	b, err := proto.Marshal(m)
	if err != nil {
		return err
	}
	if _, err := stream.Write(append(protowire.AppendVarint(nil, uint64(len(b))), b...)); err != nil {
		return err
	}
	return stream.CloseWrite()
}

// readMessage reads one length-prefixed message.
func readMessage(r *bufio.Reader) ([]byte, error) {
	n, err := binary.ReadUvarint(r)
	if err != nil {
		return nil, err
	}
	if n > maxAnswer {
		return nil, fmt.Errorf("the server answers with %d bytes, more than %d", n, maxAnswer)
	}
	b := make([]byte, n)
	_, err = io.ReadFull(r, b)
	return b, err
}
