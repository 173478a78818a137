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
	maxCard         = 5 << 10 // bytes; enough for a valid card
)

// Card is a site's description of itself, for members of its realm.
type Card struct {
	Record       []byte   `cbor:"1,keyasint"`           // as in discovery.Open
	Capabilities []string `cbor:"2,keyasint,omitempty"` // such as measurement/temperature: at most 64, sorted, each once
}

var (
	form       = identity.NewCodec(4)
	capability = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z0-9_-]{1,24}(/[a-z0-9_-]{1,24})?$`) })
)

// CheckCapability returns why a name cannot be a capability.
func CheckCapability(name string) error {
	if !capability().MatchString(name) {
		return fmt.Errorf("%.64q is not a capability: use a kind or a kind and a name, such as measurement/temperature", name)
	}
	return nil
}

// check returns why a card is invalid.
func (c Card) check() error {
	if len(c.Capabilities) > maxCapabilities {
		return fmt.Errorf("a card has at most %d capabilities, not %d", maxCapabilities, len(c.Capabilities))
	}
	for i, name := range c.Capabilities {
		if err := CheckCapability(name); err != nil {
			return err
		}
		if i > 0 && c.Capabilities[i-1] >= name {
			return fmt.Errorf("the capabilities of a card are sorted and unique: %q cannot follow %q", name, c.Capabilities[i-1])
		}
	}
	return nil
}

// write sorts the capabilities and encodes the card.
func (c Card) write() ([]byte, error) {
	c.Capabilities = slices.Compact(slices.Sorted(slices.Values(c.Capabilities)))
	if err := c.check(); err != nil {
		return nil, err
	}
	return form.Encode(c)
}

// read decodes a site's card and verifies its record.
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
		return Card{}, fmt.Errorf("%w, it is that of %v", discovery.ErrForged, r.Site)
	}
	return c, nil
}
