package bundle

import "agentsite/device"

// signedContent is a Content with the keys that are signed. They are numbers, which no message of the wire has.
type signedContent struct {
	Name        string       `cbor:"1,keyasint"`
	Kind        string       `cbor:"2,keyasint"`
	Definition  string       `cbor:"3,keyasint"`
	Needs       []signedNeed `cbor:"4,keyasint"`
	May         string       `cbor:"5,keyasint,omitempty"`
	Created     int64        `cbor:"6,keyasint"`
	Version     uint32       `cbor:"7,keyasint,omitempty"`
	Tags        []string     `cbor:"8,keyasint,omitempty"`
	Description string       `cbor:"9,keyasint,omitempty"`
}

// signedNeed is a Need of a signedContent.
type signedNeed struct {
	Name string      `cbor:"1,keyasint"`
	Kind device.Kind `cbor:"2,keyasint"`
	Unit string      `cbor:"3,keyasint,omitempty"`
	For  string      `cbor:"4,keyasint,omitempty"`
}

func (c Content) signed() signedContent {
	needs := convert(c.Needs, func(n Need) signedNeed { return signedNeed(n) })
	return signedContent{c.Name, c.Kind, c.Definition, needs, c.May, c.Created, c.Version, c.Tags, c.Description}
}

func (c signedContent) plain() Content {
	needs := convert(c.Needs, func(n signedNeed) Need { return Need(n) })
	return Content{c.Name, c.Kind, c.Definition, needs, c.May, c.Created, c.Version, c.Tags, c.Description}
}

// convert converts a list. No list stays none, because that is signed as another value than an empty one.
func convert[A, B any](all []A, to func(A) B) []B {
	if all == nil {
		return nil
	}
	converted := make([]B, len(all))
	for i, v := range all {
		converted[i] = to(v)
	}
	return converted
}
