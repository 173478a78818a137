package p2p

import (
	"encoding/hex"
	"testing"

	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/crypto/pb"
)

// TestSecp256k1Refused: a peer's key of that kind, here the curve's generator, is an error and
// never a panic (deploy/replaced/README.md).
func TestSecp256k1Refused(t *testing.T) {
	key, err := hex.DecodeString("0279be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := crypto.PublicKeyFromProto(&pb.PublicKey{Type: pb.KeyType_Secp256k1.Enum(), Data: key}); err == nil {
		t.Error("it is taken")
	}
}
