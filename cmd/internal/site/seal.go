package site

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
	// leastPassphrase is in letters. Whoever finds a backup may guess for as long as they like.
	leastPassphrase = 12
	// backupWork is what a guess costs, as a power of two: 64 MiB of memory, which a board
	// of 512 MB has to spare beside its site.
	backupWork = 16
	// mostWork is what age itself takes for a file that somebody sealed anew: 256 MiB.
	mostWork = 18
)

// CheckPassphrase refuses one that is too short.
func CheckPassphrase(passphrase string) error {
	if n := utf8.RuneCountInString(passphrase); n < leastPassphrase {
		return state.Mistakef("the passphrase has %d characters, and has to have %d: whoever finds the backup may guess for years", n, leastPassphrase)
	}
	return nil
}

// NewPassphrase makes one that nobody guesses, of 125 bits, to be written down.
func NewPassphrase() string {
	letters := slices.Chunk([]byte(rand.Text()[:25]), 5)
	return string(bytes.Join(slices.Collect(letters), []byte("-")))
}

// seal encrypts a text by a passphrase, as "age --passphrase" does: age-encryption.org/v1.
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

// unseal is the text that was sealed. A wrong passphrase is a Denied fault, all else that
// is wrong a Mistake; a file that is damaged where it keeps what the passphrase opens
// cannot be told from the first.
func unseal(sealed []byte, passphrase string) ([]byte, error) {
	by, err := age.NewScryptIdentity(passphrase)
	if err != nil {
		return nil, state.Mistake{Err: err}
	}
	by.SetMaxWorkFactor(mostWork)
	r, err := age.Decrypt(bytes.NewReader(sealed), by)
	var wrong *age.NoIdentityMatchError
	if errors.As(err, &wrong) {
		return nil, device.Faultf(device.Denied, "the passphrase does not open it: try again, with the same capital letters, dashes and spaces")
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
