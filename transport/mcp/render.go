package mcp

import (
	"bytes"

	"agentsite/transport/rpc"

	"github.com/go-json-experiment/json/jsontext"
)

// Nearly every call ends in a CallResult with one value. It is encoded by hand: the value is
// encoded once and appears twice in the result, and the bytes before it are constant.

// beginnings are the bytes before the content, in both encodings. A test compares the result with
// the codecs' encoding of a CallResult.
func (s *Server) beginnings() map[rpc.Codec][]byte {
	all := make(map[rpc.Codec][]byte)
	for codec, head := range map[rpc.Codec]string{
		rpc.JSON: "",
		// Four pairs, their keys in deterministic order: _meta, content, resultType,
		// structuredContent.
		rpc.CBOR: "\xa4\x65_meta",
	} {
		var buf bytes.Buffer
		buf.WriteString(head)
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
		all[codec] = begin
	}
	return all
}

// render writes the result of value, whose JSON is text.
func (s *Server) render(codec rpc.Codec, value any, text []byte) (rpc.Rendered, error) {
	begin := s.done[codec]
	b := make([]byte, 0, len(begin)+3*len(text)+64)
	b = append(b, begin...)
	if codec == rpc.JSON {
		b = append(b, `,"content":[{"type":"text","text":`...)
		b, err := jsontext.AppendQuote(b, text)
		if err != nil {
			return nil, err
		}
		b = append(b, `}],"structuredContent":`...)
		return append(append(b, text...), '}'), nil
	}
	b = append(b, "\x67content\x81\xa2\x64text"...)
	b = append(rpc.AppendCBORText(b, len(text)), text...)
	b = append(b, "\x64type\x64text\x6aresultType\x68complete\x71structuredContent"...)
	buf := bytes.NewBuffer(b)
	if err := codec.Encode(buf, value); err != nil {
		return nil, err
	}
	return buf.Bytes(), nil
}

// renderOnce writes the result of value without a text.
func (s *Server) renderOnce(codec rpc.Codec, value any) (rpc.Rendered, error) {
	buf := bytes.NewBuffer(make([]byte, 0, 512))
	buf.Write(s.done[codec])
	if codec == rpc.JSON {
		buf.WriteString(`,"content":[],"structuredContent":`)
	} else {
		buf.WriteString("\x67content\x80\x6aresultType\x68complete\x71structuredContent")
	}
	if err := codec.Encode(buf, value); err != nil {
		return nil, err
	}
	if codec == rpc.JSON {
		buf.WriteByte('}')
	}
	return buf.Bytes(), nil
}
