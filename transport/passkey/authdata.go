package passkey

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"

	"github.com/fxamacker/cbor/v2"
)

// Flags of authenticator data.
const (
	userPresent    = 1 << 0
	userVerified   = 1 << 2
	backupEligible = 1 << 3
	backupState    = 1 << 4
	hasCredential  = 1 << 6
	hasExtensions  = 1 << 7
)

const guidSize = 16 // of the authenticator's model

// authData holds the fields of the authenticator data, which an authenticator signs.
type authData struct {
	host    [sha256.Size]byte // the hash of its name
	flags   byte
	count   uint32
	id, key []byte // of a new credential; nil for none
}

// decoding takes CBOR as CTAP2 writes it, which nests at most four levels.
var decoding = func() cbor.DecMode {
	mode, err := cbor.DecOptions{
		DupMapKey: cbor.DupMapKeyEnforcedAPF, IndefLength: cbor.IndefLengthForbidden, TagsMd: cbor.TagsForbidden,
		UTF8: cbor.UTF8RejectInvalid, ExtraReturnErrors: cbor.ExtraDecErrorUnknownField, MaxNestedLevels: 4,
	}.DecMode()
	if err != nil {
		panic(err) // the options are constant
	}
	return mode
}()

var errAuthData = errors.New("the authenticator data has a wrong form")

// parseAuthData parses authenticator data, up to its last byte.
func parseAuthData(b []byte) (d authData, err error) {
	const fixed = sha256.Size + 1 + 4
	if len(b) < fixed || len(b) > maxAuthData {
		return d, errAuthData
	}
	copy(d.host[:], b)
	d.flags, d.count = b[sha256.Size], binary.BigEndian.Uint32(b[sha256.Size+1:])
	rest := b[fixed:]
	if d.flags&hasCredential != 0 {
		if rest, err = d.parseCredential(rest); err != nil {
			return d, err
		}
	}
	if d.flags&hasExtensions != 0 {
		var extensions map[string]any
		if rest, err = decoding.UnmarshalFirst(rest, &extensions); err != nil || extensions == nil {
			return d, errAuthData
		}
	}
	if len(rest) > 0 {
		return d, errAuthData
	}
	return d, nil
}

// parseCredential parses a new credential, and returns what follows it.
func (d *authData) parseCredential(b []byte) (rest []byte, err error) {
	if len(b) < guidSize+2 {
		return nil, errAuthData
	}
	size := int(binary.BigEndian.Uint16(b[guidSize:]))
	b = b[guidSize+2:]
	if size == 0 || size > maxID || size > len(b) {
		return nil, errAuthData
	}
	d.id, b = bytes.Clone(b[:size]), b[size:]
	var fields cbor.RawMessage
	if rest, err = decoding.UnmarshalFirst(b, &fields); err != nil {
		return nil, errAuthData
	}
	d.key = bytes.Clone(fields)
	_, err = parseKey(d.key)
	return rest, err
}

// parseAttestation parses the object of a registration that attests nothing.
func parseAttestation(b []byte) (authData, error) {
	var object struct {
		Format    string         `cbor:"fmt"`
		Statement map[string]any `cbor:"attStmt"`
		AuthData  []byte         `cbor:"authData"`
	}
	if len(b) > maxAttestation || decoding.Unmarshal(b, &object) != nil {
		return authData{}, errors.New("the attestation has a wrong form")
	}
	if object.Format != "none" || object.Statement == nil || len(object.Statement) > 0 {
		return authData{}, errors.New("it attests something, and none was asked for")
	}
	return parseAuthData(object.AuthData)
}
