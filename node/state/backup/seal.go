package backup

import (
	"bytes"
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
	// workFactor is the cost of a guess, as a power of two: 64 MiB of memory, which a board of
	// 512 MB has beside its site.
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

// seal encrypts a text with a passphrase, as "age --passphrase" does: age-encryption.org/v1.
func seal(text []byte, passphrase string, work int) ([]byte, error) {
	to, err := age.NewScryptRecipient(passphrase)
	if err != nil {
		return nil, err
	}
	to.SetWorkFactor(work)
	var sealed bytes.Buffer
	w, err := age.Encrypt(&sealed, to)
	if err != nil {
		return nil, err
	}
	_, err = w.Write(text)
	err = errors.Join(err, w.Close())
	return sealed.Bytes(), err
}

// unseal returns the text that was sealed. A wrong passphrase is a Denied fault, every other
// error a Mistake. Damage to the wrapped key looks like a wrong passphrase.
func unseal(sealed []byte, passphrase string) ([]byte, error) {
	by, err := age.NewScryptIdentity(passphrase)
	if err != nil {
		return nil, state.Mistake{Err: err}
	}
	by.SetMaxWorkFactor(maxWorkFactor)
	r, err := age.Decrypt(bytes.NewReader(sealed), by)
	var wrong *age.NoIdentityMatchError
	if errors.As(err, &wrong) {
		return nil, device.Faultf(device.Denied, "wrong passphrase: try again, with the same capital letters, dashes and spaces")
	}
	var text []byte
	if err == nil {
		text, err = io.ReadAll(r)
	}
	if err != nil {
		return nil, state.Mistakef("it is no backup, or a damaged one: take another copy (%w)", err)
	}
	return text, nil
}
