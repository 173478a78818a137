package backup

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"errors"
	"io"
	"slices"
	"unicode/utf8"

	"agentsite/device"
	"agentsite/node/state"

	"filippo.io/age"
)

const (
	// minPassphrase is the shortest passphrase, in characters: an attacker with the file can try
	// any number of them offline.
	minPassphrase = 12
	// workFactor is the cost of a guess, as a power of two: 64 MiB of memory, which a board of 512
	// MB can spare.
	workFactor = 16
	// maxWorkFactor is age's own limit for a file that another program sealed: 256 MiB.
	maxWorkFactor = 18
)

// CheckPassphrase refuses a passphrase that is too short.
func CheckPassphrase(passphrase string) error {
	if n := utf8.RuneCountInString(passphrase); n < minPassphrase {
		return state.Mistakef("the passphrase has %d characters and needs at least %d: a person who finds the backup may guess for years", n, minPassphrase)
	}
	return nil
}

// NewPassphrase returns a random one of 125 bits, to be written down.
func NewPassphrase() string {
	letters := slices.Chunk([]byte(rand.Text()[:25]), 5)
	return string(bytes.Join(slices.Collect(letters), []byte("-")))
}

// seal encrypts the output of write with a passphrase, as "age --passphrase" does:
// age-encryption.org/v1.
func seal(to io.Writer, passphrase string, work int, write func(io.Writer) error) error {
	recipient, err := age.NewScryptRecipient(passphrase)
	if err != nil {
		return err
	}
	recipient.SetWorkFactor(work)
	disk := failing{w: to}
	w, err := age.Encrypt(&disk, recipient)
	if err == nil {
		err = errors.Join(write(w), w.Close())
	}
	return cmp.Or(disk.err, err)
}

// failing keeps the error of a writer, which age does not wrap.
type failing struct {
	w   io.Writer
	err error
}

func (f *failing) Write(b []byte) (n int, err error) {
	if n, err = f.w.Write(b); err != nil {
		f.err = err
	}
	return n, err
}

// unseal passes the decrypted data to read, whose result counts only if the rest of the file is
// intact. A wrong passphrase is a Denied fault, and damage a Mistake; that to the wrapped key looks
// like a wrong passphrase.
func unseal(sealed io.Reader, passphrase string, read func(io.Reader) error) error {
	by, err := age.NewScryptIdentity(passphrase)
	if err != nil {
		return state.Mistake{Err: err}
	}
	by.SetMaxWorkFactor(maxWorkFactor)
	r, err := age.Decrypt(sealed, by)
	var wrong *age.NoIdentityMatchError
	if errors.As(err, &wrong) {
		return device.Faultf(device.Denied, "wrong passphrase: try again, with the same capital letters, dashes and spaces")
	}
	if err == nil {
		said := read(r)
		if _, err = io.Copy(io.Discard, r); err == nil {
			return said
		}
	}
	return state.Mistakef("it is no backup, or a damaged one: take another copy (%w)", err)
}
