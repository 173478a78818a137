package card

import (
	"fmt"
	"regexp"
	"slices"
	"sync"

	"agentsite/discovery"
	"agentsite/node/identity"
)

const (
	maxCapabilities = 64
	maxCard         = 5 << 10 // bytes; what has its bounds fits
)

// Card is what a site says of itself.
type Card struct {
	Record       []byte   `cbor:"1,keyasint"`           // as discovery.Open takes it
	Capabilities []string `cbor:"2,keyasint,omitempty"` // what the site can do, such as measurement/temperature: at most 64, in order, each once
}

var (
	form       = identity.NewCodec(4)
	capability = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z0-9_-]{1,24}(/[a-z0-9_-]{1,24})?$`) })
)

// CheckCapability says what is wrong with the name of something that a site can do.
func CheckCapability(name string) error {
	if !capability().MatchString(name) {
		return fmt.Errorf("%.64q names nothing that a site can do: use a kind, or a kind and what of it, such as measurement/temperature", name)
	}
	return nil
}

// check says what nobody else would take.
func (c Card) check() error {
	if len(c.Capabilities) > maxCapabilities {
		return fmt.Errorf("a card has at most %d capabilities, not %d", maxCapabilities, len(c.Capabilities))
	}
	for i, name := range c.Capabilities {
		if err := CheckCapability(name); err != nil {
			return err
		}
		if i > 0 && c.Capabilities[i-1] >= name {
			return fmt.Errorf("the capabilities of a card stand in order, each once: %q does not follow %q", name, c.Capabilities[i-1])
		}
	}
	return nil
}

// write brings the capabilities in order.
func (c Card) write() ([]byte, error) {
	c.Capabilities = slices.Compact(slices.Sorted(slices.Values(c.Capabilities)))
	if err := c.check(); err != nil {
		return nil, err
	}
	return form.Encode(c)
}

// read takes a card of a site, with a record that the site signed.
func read(b []byte, site identity.ID) (Card, error) {
	var c Card
	if err := form.Decode(b, &c); err != nil {
		return Card{}, err
	}
	if err := c.check(); err != nil {
		return Card{}, err
	}
	r, err := discovery.Open(c.Record)
	if err != nil {
		return Card{}, err
	}
	if r.Site != site {
		return Card{}, fmt.Errorf("%w: it is that of %v", discovery.ErrForged, r.Site)
	}
	return c, nil
}
