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

// answer is a callResult of nothing but a value.
type answer struct {
	begin []byte
	value any
	twice bool // in a text, too
}

func (a *answer) Render(codec rpc.Codec, w *bytes.Buffer) error {
	w.Write(a.begin)
	if !a.twice {
		return a.renderOnce(codec, w)
	}
	at := w.Len() // the text is encoded here, where both content and value copy it from, and is removed
	if err := rpc.JSON.Encode(w, a.value); err != nil {
		return err
	}
	n := w.Len() - at
	w.Grow(3*n + 128)
	text := w.Bytes()[at:]
	if codec == rpc.JSON {
		w.WriteString(`,"content":[{"type":"text","text":`)
		quoted, err := jsontext.AppendQuote(w.AvailableBuffer(), text)
		if err != nil {
			return err
		}
		w.Write(quoted)
		w.WriteString(`}],"structuredContent":`)
		w.Write(text)
		w.WriteByte('}')
	} else {
		w.WriteString("\x67content\x81\xa2\x64text")
		w.Write(rpc.AppendCBORText(w.AvailableBuffer(), n))
		w.Write(text)
		w.WriteString("\x64type\x64text\x6aresultType\x68complete\x71structuredContent")
		if err := codec.Encode(w, a.value); err != nil {
			return err
		}
	}
	b := w.Bytes()[at:]
	w.Truncate(at + copy(b, b[n:]))
	return nil
}

// renderOnce continues without a text.
func (a *answer) renderOnce(codec rpc.Codec, w *bytes.Buffer) error {
	if codec != rpc.JSON {
		w.WriteString("\x67content\x80\x6aresultType\x68complete\x71structuredContent")
		return codec.Encode(w, a.value)
	}
	w.WriteString(`,"content":[],"structuredContent":`)
	err := codec.Encode(w, a.value)
	w.WriteByte('}')
	return err
}
