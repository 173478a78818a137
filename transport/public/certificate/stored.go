package certificate

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-json-experiment/json"
)

// stored is the content of a manager's file.
type stored struct {
	Directory string        `json:"directory"`            // the authority's URL; the rest is of it
	Key       string        `json:"account_key,omitzero"` // PEM, as all keys
	Account   string        `json:"account,omitzero"`     // its URL
	Orders    []placedOrder `json:"orders,omitzero"`      // of the last week, oldest first
	Pending   *begunOrder   `json:"pending,omitzero"`
	Chain     string        `json:"certificate,omitzero"` // PEM, the site's own first
	ChainKey  string        `json:"key,omitzero"`
	Serials   []string      `json:"serials,omitzero"` // of the last certificates that were ordered
}

// placedOrder is an order that counts.
type placedOrder struct {
	At        time.Time `json:"at"`
	Finalized bool      `json:"finalized,omitzero"` // a certificate may have been made for it
}

// begunOrder is an order that has no certificate yet.
type begunOrder struct {
	Name string `json:"name"`
	URL  string `json:"url"`
	Key  string `json:"key"` // of the certificate
}

// maxSerials is more than there are certificates at a time.
const maxSerials = 16

const week = 7 * 24 * time.Hour

// An authority makes at most five certificates for one name in a week. pauses are the least times between two
// orders, by the number of those of the last week.
const mostFinalized = 4

var pauses = []time.Duration{0, time.Minute, 10 * time.Minute, time.Hour, 6 * time.Hour, 24 * time.Hour}

// nextOrder returns when an order may be made at the earliest, and forgets those that are older than a week. An
// order of the future, by a clock that was wrong, counts as one of now.
func (s *stored) nextOrder(now time.Time) time.Time {
	s.Orders = slices.DeleteFunc(s.Orders, func(o placedOrder) bool { return now.Sub(o.At) > week })
	next := now
	finalized := 0
	for i := range s.Orders {
		o := &s.Orders[i]
		if o.At.After(now) {
			o.At = now
		}
		if o.Finalized {
			finalized++
		}
	}
	if n := len(s.Orders); n > 0 {
		next = s.Orders[n-1].At.Add(pauses[min(n, len(pauses)-1)])
	}
	for _, o := range s.Orders {
		if finalized < mostFinalized {
			break
		}
		if o.Finalized {
			finalized--
			if free := o.At.Add(week); free.After(next) {
				next = free
			}
		}
	}
	return next
}

// future reports whether there is an order of the future.
func (s *stored) future(now time.Time) bool {
	return slices.ContainsFunc(s.Orders, func(o placedOrder) bool { return o.At.After(now) })
}

// lost returns what is kept after a damage: nobody knows how many orders there were, and it is one a day.
func lost(directory string) stored {
	s := stored{Directory: directory}
	for range pauses {
		s.Orders = append(s.Orders, placedOrder{At: time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)})
	}
	return s
}

// certificate returns the certificate that is stored, nil for none.
func (s *stored) certificate() (*tls.Certificate, error) {
	if s.Chain == "" {
		return nil, nil
	}
	c, err := tls.X509KeyPair([]byte(s.Chain), []byte(s.ChainKey))
	if err != nil {
		return nil, fmt.Errorf("the stored certificate cannot be used: %w", err)
	}
	return &c, nil
}

// renewAt returns when a certificate is renewed: after two thirds of its life, and a part of what is left that is
// another for each certificate, so that those of one day do not all come at once.
func renewAt(leaf *x509.Certificate) time.Time {
	life := leaf.NotAfter.Sub(leaf.NotBefore)
	hash := sha256.Sum256(leaf.Raw)
	part := float64(binary.BigEndian.Uint32(hash[:])) / (1 << 32)
	return leaf.NotBefore.Add(life*2/3 + time.Duration(part*float64(life)/12))
}

func newKey() (*ecdsa.PrivateKey, error) { return ecdsa.GenerateKey(elliptic.P256(), rand.Reader) }

func keyPEM(key *ecdsa.PrivateKey) (string, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	return string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})), err
}

func parseKey(text string) (*ecdsa.PrivateKey, error) {
	block, _ := pem.Decode([]byte(text))
	if block == nil {
		return nil, errors.New("a key is damaged")
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, err
	}
	own, ok := key.(*ecdsa.PrivateKey)
	if !ok {
		return nil, errors.New("a key is of another kind")
	}
	return own, nil
}

func parseStored(text []byte) (s stored, err error) {
	if text == nil {
		return s, nil
	}
	if err := json.Unmarshal(text, &s); err != nil {
		return s, fmt.Errorf("the file of the public name's certificate is damaged: %w", err)
	}
	return s, nil
}
