package rpc

import (
	"io"

	"github.com/fxamacker/cbor/v2"
)

// Sequence reads messages that follow one another (RFC 8742, CBOR sequences).
type Sequence struct {
	in  io.LimitedReader
	dec *cbor.Decoder
}

func NewSequence(r io.Reader) *Sequence {
	s := &Sequence{in: io.LimitedReader{R: r}}
	s.dec = cborDec.NewDecoder(&s.in)
	return s
}

// Next returns the next message, still encoded. It takes in no more than
// MaxAnswer bytes for it: a longer one fails as one that is cut short does, with
// io.ErrUnexpectedEOF. After the last it returns io.EOF.
func (s *Sequence) Next() ([]byte, error) {
	s.in.N = MaxAnswer
	var item cbor.RawMessage
	err := s.dec.Decode(&item)
	return item, err
}
