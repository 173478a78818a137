package mcp

import (
	"bytes"

	"agentsite/transport/rpc"

	"github.com/go-json-experiment/json/jsontext"
)

// Nearly every call ends in a CallResult with one value. It is written by hand: the
// value is encoded once and stands in the result twice, and all that comes before
// it is the same each time.

// beginnings are the bytes before the text, in both encodings. A test compares the
// whole with what the codecs make of a CallResult.
func (s *Server) beginnings() map[rpc.Codec][]byte {
	all := make(map[rpc.Codec][]byte)
	for codec, b := range map[rpc.Codec]struct{ head, tail string }{
		rpc.JSON: {"", `,"content":[{"type":"text","text":`},
		// Four pairs, their keys in deterministic order: _meta, content, resultType,
		// structuredContent.
		rpc.CBOR: {"\xa4\x65_meta", "\x67content\x81\xa2\x64text"},
	} {
		var buf bytes.Buffer
		buf.WriteString(b.head)
		var first any = s.completed()
		if codec == rpc.CBOR {
			first = s.completed().Meta
		}
		if err := codec.Encode(&buf, first); err != nil {
			panic(err) // a name or version that is not UTF-8: no answer could be given
		}
		begin := buf.Bytes()
		if codec == rpc.JSON {
			begin = bytes.TrimSuffix(begin, []byte("}"))
		}
		all[codec] = append(begin, b.tail...)
	}
	return all
}

// render writes the result of value, whose JSON is text.
func (s *Server) render(codec rpc.Codec, value any, text []byte) (rpc.Rendered, error) {
	begin := s.done[codec]
	b := make([]byte, 0, len(begin)+3*len(text)+64)
	b = append(b, begin...)
	if codec == rpc.JSON {
		b, err := jsontext.AppendQuote(b, text)
		if err != nil {
			return nil, err
		}
		b = append(b, `}],"structuredContent":`...)
		return append(append(b, text...), '}'), nil
	}
	b = append(rpc.AppendCBORText(b, len(text)), text...)
	b = append(b, "\x64type\x64text\x6aresultType\x68complete\x71structuredContent"...)
	buf := bytes.NewBuffer(b)
	if err := codec.Encode(buf, value); err != nil {
		return nil, err
	}
	return buf.Bytes(), nil
}
