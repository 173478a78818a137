package legacy

import "agentsite/transport/rpc"

// strict are a tool's arguments: an unknown one is refused by name.
type strict []byte

func (a strict) Decode(into any) error { return encoded(a).DecodeStrict(into) }

// answer is a client's answer. It may say more than was asked.
type answer []byte

func (a answer) Decode(into any) error { return encoded(a).Decode(into) }

// encoded is a text in JSON, an empty one for no fields.
func encoded(text []byte) rpc.Raw {
	if len(text) == 0 {
		return rpc.Raw{}
	}
	return rpc.RawJSON(text)
}
