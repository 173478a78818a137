package card

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"agentsite/discovery"
	"agentsite/node/identity"
	"agentsite/transport/p2p"

	"github.com/libp2p/go-libp2p/core/network"
)

// TestFile: a member of the realm gets a file by its ID, however large it may be, and nobody else gets
// a byte.
func TestFile(t *testing.T) {
	site, asker, home := open(t, identity.New(), nil), open(t, identity.New(), nil), realm(t, "home")
	large := bytes.Repeat([]byte("x"), MaxFile)
	files := map[FileID][]byte{sha256.Sum256(large): large, sha256.Sum256([]byte("small")): []byte("small")}
	read := new(atomic.Int32)
	serve := func(id FileID) []byte { read.Add(1); return files[id] }
	defer ServeFiles(site, home, serve)()
	for id, want := range files {
		if got, err := FetchFile(t.Context(), asker, home, at(site), id); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%d bytes, %v", len(got), err)
		}
	}
	if got, err := FetchFile(t.Context(), asker, home, at(site), FileID{1}); err == nil {
		t.Errorf("a file that nobody shares: %q", got)
	}
	read.Store(0)
	for _, other := range []discovery.Realm{realm(t, "home"), realm(t, "away"), discovery.PublicRealm()} {
		for id := range files {
			if got, err := FetchFile(t.Context(), asker, other, at(site), id); err == nil {
				t.Errorf("%#v gets %d bytes", other, len(got))
			}
		}
	}
	id := sha256.Sum256([]byte("small"))
	nonce := make([]byte, nonceSize)
	for what, says := range map[string][]byte{
		"nothing": nil, "zeroes": make([]byte, nonceSize+proofSize+sha256.Size), "much": make([]byte, 1<<16),
		"a card's proof":  bytes.Join([][]byte{nonce, proof(home, "ask", site.ID(), asker.ID(), nonce, nil), id[:]}, nil),
		"another's proof": bytes.Join([][]byte{nonce, proof(home, "ask file", site.ID(), site.ID(), nonce, id[:]), id[:]}, nil),
		"another file's":  bytes.Join([][]byte{nonce, proof(home, "ask file", site.ID(), asker.ID(), nonce, make([]byte, 32)), id[:]}, nil),
		"no ID":           bytes.Join([][]byte{nonce, proof(home, "ask file", site.ID(), asker.ID(), nonce, id[:])}, nil),
	} {
		s, err := asker.NewStream(t.Context(), site.ID(), FileProtocol)
		if err != nil {
			t.Fatal(err)
		}
		s.Write(says)
		s.CloseWrite()
		if b, err := io.ReadAll(s); len(b) > 0 || err == nil {
			t.Errorf("who says %s is answered %x, %v", what, b, err)
		}
		s.Reset()
	}
	if n := read.Load(); n != 0 {
		t.Errorf("files were looked up %d times for strangers", n)
	}
}

// TestFilePublic: in the realm of everybody the files that read returns are served.
func TestFilePublic(t *testing.T) {
	site, asker := open(t, identity.New(), nil), open(t, identity.New(), nil)
	id := FileID(sha256.Sum256([]byte("small")))
	files := map[FileID][]byte{id: []byte("small"), Catalog: []byte("the list")}
	defer ServeFiles(site, discovery.PublicRealm(), func(id FileID) []byte { return files[id] })()
	for asked, want := range files {
		if got, err := FetchFile(t.Context(), asker, discovery.PublicRealm(), at(site), asked); !bytes.Equal(got, want) {
			t.Errorf("%q, %v", got, err)
		}
	}
	if got, err := FetchFile(t.Context(), asker, realm(t, "home"), at(site), id); err == nil {
		t.Errorf("%q for another realm", got)
	}
}

// TestFileLimit: a peer that holds places open has few, and others are served.
func TestFileLimit(t *testing.T) {
	site, stranger, home := open(t, identity.New(), nil), open(t, identity.New(), nil), realm(t, "home")
	id := sha256.Sum256([]byte("small"))
	defer ServeFiles(site, home, func(FileID) []byte { return []byte("small") })()
	if err := stranger.Connect(t.Context(), at(site)); err != nil {
		t.Fatal(err)
	}
	for range 3 * maxFiles {
		if s, err := stranger.NewStream(t.Context(), site.ID(), FileProtocol); err == nil {
			defer s.Reset()
			s.Write([]byte("so"))
		}
	}
	if got, err := FetchFile(t.Context(), open(t, identity.New(), nil), home, at(site), id); err != nil {
		t.Errorf("%q, %v", got, err)
	}
}

// TestFileStrangers: silent strangers, as many as a site has connections for, keep no file from a member.
func TestFileStrangers(t *testing.T) {
	const strangers = 15
	site, home := open(t, identity.New(), nil), realm(t, "home")
	id := sha256.Sum256([]byte("small"))
	defer ServeFiles(site, home, func(FileID) []byte { return []byte("small") })()
	for i := range strangers {
		h, err := p2p.New(p2p.Options{Key: identity.New(), Listen: []string{fmt.Sprintf("/ip4/127.0.0.%d/tcp/0", 2+i%5)}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { h.Close() })
		if err := h.Connect(t.Context(), at(site)); err != nil {
			t.Fatal(err)
		}
		for range maxFilePerPeer {
			if s, err := h.NewStream(t.Context(), site.ID(), FileProtocol); err == nil {
				s.Write([]byte("so"))
			}
		}
	}
	if _, err := FetchFile(t.Context(), open(t, identity.New(), nil), home, at(site), id); err != nil {
		t.Error(err)
	}
}

// TestFileImpostor: a member of the realm that sends something else than was asked for, too much, or
// nothing for long, is refused within a bound.
func TestFileImpostor(t *testing.T) {
	impostor, asker, home := open(t, identity.New(), nil), open(t, identity.New(), nil), realm(t, "home")
	id := sha256.Sum256([]byte("small"))
	silent := make(chan struct{})
	asked := func(s network.Stream) []byte {
		question := make([]byte, nonceSize+proofSize+sha256.Size)
		io.ReadFull(s, question)
		return question[:nonceSize]
	}
	answer := func(s network.Stream, content []byte) {
		p := proof(home, "answer file", impostor.ID(), asker.ID(), asked(s), content)
		s.Write(append(p, content...))
	}
	for what, do := range map[string]func(network.Stream){
		"another file": func(s network.Stream) { answer(s, []byte("other")) },
		"an empty one": func(s network.Stream) { answer(s, nil) },
		"a large one":  func(s network.Stream) { answer(s, make([]byte, MaxFile+1)) },
		"a huge one":   func(s network.Stream) { answer(s, make([]byte, 1<<20)) },
		"no proof":     func(s network.Stream) { asked(s); s.Write(append(make([]byte, proofSize), "small"...)) },
		"a cut one":    func(s network.Stream) { asked(s); s.Write(make([]byte, proofSize-1)) },
		"silence":      func(s network.Stream) { asked(s); io.ReadAll(s); <-silent },
	} {
		ended := make(chan struct{})
		impostor.SetStreamHandler(FileProtocol, func(s network.Stream) {
			defer close(ended)
			do(s)
			s.Close()
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		start := time.Now()
		if got, err := FetchFile(ctx, asker, home, at(impostor), id); err == nil {
			t.Errorf("%s is taken: %q", what, got)
		} else if strings.Contains(err.Error(), "small") {
			t.Error(err)
		}
		if took := time.Since(start); took > 3*time.Second {
			t.Errorf("%s: it took %v", what, took)
		}
		cancel()
		if what == "silence" {
			close(silent)
		}
		<-ended
	}
}
