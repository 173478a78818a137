package main

import (
	"bytes"
	"crypto"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/armor"
	"github.com/ProtonMail/go-crypto/openpgp/clearsign"
	"github.com/ProtonMail/go-crypto/openpgp/eddsa"
	"github.com/ProtonMail/go-crypto/openpgp/packet"

	"agentsite/node/identity"
)

// certified is the date of every certificate, so that its fingerprint depends on the key only.
var certified = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

const userID = "agentsite releases"

// config returns options that bring the same bytes each time.
func config(date time.Time) *packet.Config {
	salted := false
	return &packet.Config{
		DefaultHash: crypto.SHA512, Time: func() time.Time { return date },
		NonDeterministicSignaturesViaNotation: &salted,
		Algorithm:                             packet.PubKeyAlgoEdDSA, Curve: packet.Curve25519,
	}
}

// readKey returns the release key of a file as an OpenPGP key: version 4, EdDSA, which signs only. It is the same key
// as that of updates, whose signatures have a context that OpenPGP's have not, so that neither passes for the other.
func readKey(file string) (*openpgp.Entity, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	key, err := identity.ParsePEM(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	c := config(certified)
	c.Rand = io.MultiReader(bytes.NewReader(key.Private().Seed()), rand.Reader) // a key is made of the first bytes
	e, err := openpgp.NewEntity(userID, "", "", c)
	if err != nil {
		return nil, err
	}
	id := key.ID()
	if public, ok := e.PrimaryKey.PublicKey.(*eddsa.PublicKey); !ok || !bytes.Equal(public.X, id[:]) {
		return nil, errors.New("the OpenPGP library makes another key of it")
	}
	e.Subkeys = nil
	return e, nil
}

// printCertificates writes the certificates of a key and of the files, armored together.
func printCertificates(w io.Writer, key string, files []string) error {
	e, err := readKey(key)
	if err != nil {
		return err
	}
	all := openpgp.EntityList{e}
	for _, file := range files {
		f, err := os.Open(file)
		if err != nil {
			return err
		}
		more, err := openpgp.ReadArmoredKeyRing(f)
		f.Close()
		if err != nil {
			return fmt.Errorf("%s is no certificate that publish cert printed: %w", file, err)
		}
		all = append(all, more...)
	}
	out, err := armor.Encode(w, openpgp.PublicKeyType, nil)
	if err != nil {
		return err
	}
	for _, e := range all {
		if err := e.Serialize(out); err != nil {
			return err
		}
	}
	if err := out.Close(); err != nil {
		return err
	}
	_, err = io.WriteString(w, "\n")
	return err
}

// signInline returns a text with a signature around it, and signDetached the signature alone.
func signInline(e *openpgp.Entity, text []byte, date time.Time) ([]byte, error) {
	var b bytes.Buffer
	w, err := clearsign.Encode(&b, e.PrivateKey, config(date))
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(text); err != nil {
		return nil, err
	}
	err = w.Close()
	return append(b.Bytes(), '\n'), err
}

func signDetached(e *openpgp.Entity, text []byte, date time.Time) ([]byte, error) {
	var b bytes.Buffer
	err := openpgp.ArmoredDetachSign(&b, e, bytes.NewReader(text), config(date))
	return append(b.Bytes(), '\n'), err
}
