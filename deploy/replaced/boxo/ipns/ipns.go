// Package ipns stands in for the part of github.com/ipfs/boxo/ipns that kad-dht names: the
// type of a validator. See the README two folders up.
package ipns

import "errors"

// Validator refuses every IPNS record. It is safe for concurrent use.
type Validator struct{ KeyBook any }

var errRefused = errors.New("this program serves no IPNS records")

// Validate returns an error, whatever the record is.
func (Validator) Validate(string, []byte) error { return errRefused }

// Select returns an error, whatever the records are.
func (Validator) Select(string, [][]byte) (int, error) { return 0, errRefused }
