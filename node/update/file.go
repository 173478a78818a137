package update

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"regexp"
	"runtime"
	"runtime/debug"
	"sync"

	"agentsite/node/identity"
)

const (
	// A file begins with a line with the version of the format. Two bytes with the length of the
	// seal follow, the seal, and the program, to the end of the file.
	mark  = "agentsite update "
	magic = mark + "1\n"

	maxSeal       = 4 << 10
	maxSignatures = 4
	// MaxProgram limits the size of a program, in bytes: a card, which has at least 2 GB, has
	// four copies of it.
	MaxProgram = 128 << 20

	purpose identity.Purpose = "update"
)

// Release is the signed description of a program.
type Release struct {
	Version  string            `cbor:"1,keyasint"` // for people: letters, digits, and . + ~ _ -, at most 64
	Sequence uint64            `cbor:"2,keyasint"` // greater than that of all releases before; at least 1
	Target   string            `cbor:"3,keyasint"` // as of Target
	Size     int64             `cbor:"4,keyasint"` // of the program, in bytes; 1 to MaxProgram
	SHA256   [sha256.Size]byte `cbor:"5,keyasint"`
}

// seal is an encoded release with its signatures.
type seal struct {
	Release    []byte      `cbor:"1,keyasint"`
	Signatures []signature `cbor:"2,keyasint"`
}

type signature struct {
	Key       identity.ID `cbor:"1,keyasint"`
	Signature []byte      `cbor:"2,keyasint"`
}

var (
	codec = identity.NewCodec(4)

	versions = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9.+~_-]{1,64}$`) })
	targets  = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z0-9]{1,16}/[a-z0-9]{1,16}(/[0-9])?$`) })
)

func (r Release) check() error {
	switch {
	case !versions().MatchString(r.Version):
		return fmt.Errorf("a version is 1 to 64 letters, digits and . + ~ _ -, not %.80q", r.Version)
	case r.Sequence == 0:
		return errors.New("its sequence is 0; the first is 1")
	case !targets().MatchString(r.Target):
		return fmt.Errorf("a target is such as linux/arm64 or linux/arm/6, not %.80q", r.Target)
	case r.Size < 1 || r.Size > MaxProgram:
		return fmt.Errorf("a program has 1 to %d bytes, not %d", MaxProgram, r.Size)
	}
	return nil
}

// Target returns the platform of this program, such as linux/arm64 or linux/arm/6.
func Target() string {
	target := runtime.GOOS + "/" + runtime.GOARCH
	info, _ := debug.ReadBuildInfo()
	for _, s := range info.Settings {
		if s.Key == "GOARM" && s.Value != "" {
			target += "/" + s.Value[:1] // "6" or "6,softfloat"
		}
	}
	return target
}

// Sign writes an update: r, with the size and hash of the program, signed by keys.
func Sign(w io.Writer, r Release, program []byte, keys ...identity.Key) error {
	r.Size, r.SHA256 = int64(len(program)), sha256.Sum256(program)
	if err := r.check(); err != nil {
		return err
	}
	if len(keys) < 1 || len(keys) > maxSignatures {
		return fmt.Errorf("an update is signed by 1 to %d keys, not %d", maxSignatures, len(keys))
	}
	body, err := codec.Encode(r)
	if err != nil {
		return err
	}
	s := seal{Release: body}
	for _, k := range keys {
		s.Signatures = append(s.Signatures, signature{k.ID(), k.Sign(purpose, body)})
	}
	sealed, err := codec.Encode(s)
	if err != nil {
		return err
	}
	head := binary.BigEndian.AppendUint16([]byte(magic), uint16(len(sealed)))
	_, err = w.Write(append(head, sealed...))
	if err == nil {
		_, err = w.Write(program)
	}
	return err
}

// Update is a verified release and its program, which is not read yet.
type Update struct {
	Release
	head    []byte // the bytes before the program
	program io.Reader
}

// Refused is an error of the update itself, for which a retry does not help.
type Refused struct{ error }

func (r Refused) Unwrap() error { return r.error }

func damaged(why string) error {
	return Refused{fmt.Errorf("not an update of agentsite, or damaged (%s): download it again", why)}
}

// Read reads an update up to its program, at most some 4 KiB, and refuses it unless one of the keys
// has signed it. Without keys it refuses every update.
func Read(r io.Reader, keys []identity.ID) (*Update, error) {
	if len(keys) == 0 {
		return nil, Refused{errors.New("this build of agentsite has no release keys and accepts no updates: install a package, or replace the program by hand")}
	}
	head := make([]byte, len(magic)+2)
	if err := readFull(r, head); err != nil {
		return nil, err
	}
	switch begins := string(head[:len(magic)]); {
	case begins != magic && begins[:len(mark)] == mark:
		return nil, Refused{errors.New("unknown format of the update: install the newer package")}
	case begins != magic:
		return nil, damaged("it begins differently")
	}
	length := binary.BigEndian.Uint16(head[len(magic):])
	if length > maxSeal {
		return nil, damaged("its seal is too long")
	}
	sealed := make([]byte, length)
	if err := readFull(r, sealed); err != nil {
		return nil, err
	}
	release, err := open(sealed, keys)
	if err != nil {
		return nil, err
	}
	return &Update{release, append(head, sealed...), r}, nil
}

func readFull(r io.Reader, b []byte) error {
	_, err := io.ReadFull(r, b)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return damaged("it ends too early")
	}
	return err
}

// open verifies a seal and returns its release.
func open(sealed []byte, keys []identity.ID) (Release, error) {
	var s seal
	var r Release
	if err := codec.Decode(sealed, &s); err != nil || len(s.Signatures) > maxSignatures {
		return r, damaged("its seal cannot be read")
	}
	if !signed(s, keys) {
		return r, Refused{errors.New("not signed by a release key of this program: it is damaged, from another source, or so new that its package has to be installed")}
	}
	if err := codec.Decode(s.Release, &r); err != nil {
		return r, damaged("its release cannot be read")
	}
	if err := r.check(); err != nil {
		return r, damaged(err.Error())
	}
	return r, nil
}

func signed(s seal, keys []identity.ID) bool {
	for _, by := range s.Signatures {
		for _, key := range keys {
			if by.Key == key && key.Verify(purpose, s.Release, by.Signature) {
				return true
			}
		}
	}
	return false
}

// CopyTo writes the program to w and verifies it. After an error, the caller must not use the
// written bytes.
func (u *Update) CopyTo(w io.Writer) error {
	hash := sha256.New()
	_, err := io.CopyN(io.MultiWriter(w, hash), u.program, u.Size)
	if errors.Is(err, io.EOF) {
		return damaged("it ends too early")
	}
	if err != nil {
		return err
	}
	var more [1]byte
	switch _, err := io.ReadFull(u.program, more[:]); {
	case err == nil:
		return damaged("there are bytes after its end")
	case !errors.Is(err, io.EOF):
		return err
	case [sha256.Size]byte(hash.Sum(nil)) != u.SHA256:
		return damaged("its program is not the one that was signed")
	}
	return nil
}

// copyWhole writes the complete update as it was read, and verifies it.
func (u *Update) copyWhole(w io.Writer) error {
	if _, err := w.Write(u.head); err != nil {
		return err
	}
	return u.CopyTo(w)
}
