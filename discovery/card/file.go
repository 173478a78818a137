package card

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"time"

	"agentsite/discovery"
	"agentsite/node/identity"
	"agentsite/node/quota"

	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"
)

// FileProtocol requests a file that a site shares with its realm, by the SHA-256 of its bytes, or the
// list of those that anybody of the realm may have. Both sides prove that they know the realm, as for a
// card.
const FileProtocol protocol.ID = "/agentsite/file/1"

const (
	// MaxFile is the size of a file.
	MaxFile = 64 << 10

	fileTimeout    = 20 * time.Second
	maxFiles       = 8 // sent at a time
	maxFilePerPeer = 2
	// maxAsking is more than strangers, with sixteen connections, can use.
	maxAsking = 64
)

// FileID is the SHA-256 of a file.
type FileID [sha256.Size]byte

// Catalog is in the place of a FileID for the list of the files that a site publishes.
var Catalog FileID

// ServeFiles sends the files that read returns, nil for none, to members of the realm that know their
// IDs, until stop. Others learn nothing. In the public realm these are everybody. read is called with
// Catalog, too.
func ServeFiles(h host.Host, realm discovery.Realm, read func(FileID) []byte) (stop func()) {
	if read == nil {
		return func() {}
	}
	asking, sending := new(quota.Quota), new(quota.Quota)
	h.SetStreamHandler(FileProtocol, func(stream network.Stream) {
		if !serveFile(stream, realm, asking, sending, read) {
			stream.Reset()
			return
		}
		stream.Close()
	})
	return func() { h.RemoveStreamHandler(FileProtocol) }
}

// serveFile takes one of the places for sending only after the proof: strangers do not get them.
func serveFile(stream network.Stream, realm discovery.Realm, asking, sending *quota.Quota, read func(FileID) []byte) bool {
	asker := stream.Conn().RemotePeer()
	place := []quota.Limit{{Group: asker, Most: maxFilePerPeer}, {Most: maxAsking}}
	if !asking.Take(place...) {
		return false
	}
	nonce, file, err := readQuestion(stream, realm, stream.Conn().LocalPeer(), asker, read)
	asking.Release(place...)
	if err != nil {
		return false
	}
	turn := []quota.Limit{{Group: asker, Most: maxFilePerPeer}, {Most: maxFiles}}
	if !sending.Take(turn...) {
		return false
	}
	defer sending.Release(turn...)
	if stream.SetDeadline(time.Now().Add(fileTimeout)) != nil {
		return false
	}
	_, err = stream.Write(bytes.Join([][]byte{proof(realm, "answer file", stream.Conn().LocalPeer(), asker, nonce, file), file}, nil))
	return err == nil
}

// readQuestion returns the file that a member of the realm asks for, and the nonce of the question.
func readQuestion(stream network.Stream, realm discovery.Realm, site, asker peer.ID, read func(FileID) []byte) (nonce, file []byte, err error) {
	if err := stream.SetDeadline(time.Now().Add(timeout)); err != nil {
		return nil, nil, err
	}
	question := make([]byte, nonceSize+proofSize+sha256.Size)
	if _, err := io.ReadFull(stream, question); err != nil {
		return nil, nil, err
	}
	nonce, shown, id := question[:nonceSize], question[nonceSize:nonceSize+proofSize], question[nonceSize+proofSize:]
	if !hmac.Equal(shown, proof(realm, "ask file", site, asker, nonce, id)) {
		return nil, nil, errOtherRealm
	}
	if file = read(FileID(id)); file == nil {
		return nil, nil, errNoFile
	}
	return nonce, file, nil
}

var errNoFile = errors.New("the site does not share such a file")

// FetchFile fetches a file from a site, connecting if need be. It blocks for at most twenty seconds
// after it has connected. The result has the requested ID, if that is not Catalog, and has not been
// decoded.
func FetchFile(ctx context.Context, h host.Host, realm discovery.Realm, site peer.AddrInfo, file FileID) ([]byte, error) {
	id, err := identity.Parse(site.ID.String())
	if err != nil {
		return nil, err
	}
	stream, end, _, err := openStream(ctx, h, site, FileProtocol, fileTimeout)
	if err != nil {
		return nil, fmt.Errorf("cannot fetch the file from %v (%w)", id, err)
	}
	defer end()
	b, err := exchangeFile(stream, realm, h.ID(), site.ID, file)
	if err != nil {
		return nil, fmt.Errorf("no such file from %v (%w)", id, err)
	}
	return b, nil
}

func exchangeFile(stream cardStream, realm discovery.Realm, self, site peer.ID, file FileID) ([]byte, error) {
	nonce := make([]byte, nonceSize)
	rand.Read(nonce)
	if _, err := stream.Write(bytes.Join([][]byte{nonce, proof(realm, "ask file", site, self, nonce, file[:]), file[:]}, nil)); err != nil {
		return nil, err
	}
	if err := stream.CloseWrite(); err != nil {
		return nil, err
	}
	b, err := io.ReadAll(io.LimitReader(stream, proofSize+MaxFile+1))
	if err != nil {
		return nil, err
	}
	if len(b) < proofSize || len(b) > proofSize+MaxFile {
		return nil, fmt.Errorf("an answer of %d bytes", len(b))
	}
	shown, content := b[:proofSize], b[proofSize:]
	if !hmac.Equal(shown, proof(realm, "answer file", site, self, nonce, content)) {
		return nil, errOtherRealm
	}
	if file != Catalog && sha256.Sum256(content) != file {
		return nil, errors.New("it sent another file than was asked for")
	}
	return content, nil
}
