package legacy

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"

	"agentsite/transport/rpc"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// maxExact is the largest integer that the SDK, which reads numbers as float64, answers as
// it came.
const maxExact = 1 << 53

// inspect refuses input that the SDK would misread. This is text that is not strict JSON or
// continues after its message. It is also a message that is neither a request nor an answer, or an
// id that the SDK would change. It returns the refusal, to be sent if it is not empty; nil for
// none.
func inspect(text []byte) []byte {
	messages := []jsontext.Value{text}
	if bytes.HasPrefix(bytes.TrimLeft(text, " \t\r\n"), []byte("[")) {
		messages = nil
		if err := json.Unmarshal(text, &messages); err != nil {
			return errorResponse(nil, jsonrpc.CodeParseError, "not valid JSON")
		}
		if len(messages) > maxInFlight {
			return errorResponse(nil, jsonrpc.CodeInvalidRequest, fmt.Sprintf("a batch has at most %d messages: send the others afterwards", maxInFlight))
		}
	}
	for _, m := range messages {
		if r := inspectMessage(m); r != nil {
			return r
		}
	}
	return nil
}

func inspectMessage(text []byte) []byte {
	var m struct {
		Version string         `json:"jsonrpc"`
		ID      jsontext.Value `json:"id"`
		Method  string         `json:"method"`
		Params  jsontext.Value `json:"params"`
		Result  jsontext.Value `json:"result"`
		Error   jsontext.Value `json:"error"`
	}
	if !jsontext.Value(text).IsValid() {
		return errorResponse(nil, jsonrpc.CodeParseError, "not valid JSON: one message, in UTF-8, and each name once in an object")
	}
	err := json.Unmarshal(text, &m)
	var about struct {
		Request jsontext.Value `json:"requestId"`
		Meta    struct {
			Progress jsontext.Value `json:"progressToken"`
		} `json:"_meta"`
	}
	if len(m.Params) > 0 {
		_ = json.Unmarshal(m.Params, &about) // a message with neither is for the SDK to read
	}
	switch {
	case err != nil || m.Version != "2.0":
		return errorResponse(m.ID, jsonrpc.CodeInvalidRequest, `not a JSON-RPC message: "jsonrpc" is "2.0", and "method" a text`)
	case m.Method == "" && (len(m.ID) == 0 || (len(m.Result) == 0) == (len(m.Error) == 0)):
		return errorResponse(m.ID, jsonrpc.CodeInvalidRequest, `"method" is missing, and it is no answer either`)
	case m.Method == "" && m.ID.Kind() == 'n' && len(m.Error) > 0: // about no request: nobody answers that
		return []byte{}
	case !isExact(m.ID) || !isExact(about.Request) || !isExact(about.Meta.Progress):
		return errorResponse(m.ID, jsonrpc.CodeInvalidRequest, fmt.Sprintf("an id is a text or an integer of at most %d", int64(maxExact)))
	}
	return nil
}

// isExact reports whether an id comes back as it is; none does.
func isExact(id jsontext.Value) bool {
	if len(id) == 0 || id.Kind() == '"' {
		return true
	}
	n, err := strconv.ParseInt(string(id), 10, 64)
	return err == nil && -maxExact <= n && n <= maxExact
}

// errorResponse answers a message that goes no further.
func errorResponse(id jsontext.Value, code int, says string) []byte {
	if k := id.Kind(); k != '"' && k != '0' {
		id = jsontext.Value("null")
	}
	text, _ := json.Marshal(map[string]any{
		"jsonrpc": "2.0", "id": id, "error": map[string]any{"code": code, "message": says},
	}, json.Deterministic(true))
	return text
}

// inspected is a stream of lines of which only those are read that inspect lets pass. The
// others are answered in between.
type inspected struct {
	io.ReadWriteCloser
	lines *rpc.Lines
	left  []byte // of the line that is being read

	mu sync.Mutex // held while writing
}

func newInspected(rw io.ReadWriteCloser) *inspected {
	return &inspected{ReadWriteCloser: rw, lines: rpc.NewLines(rw)}
}

func (s *inspected) Read(p []byte) (int, error) {
	for len(s.left) == 0 {
		line, err := s.lines.Next()
		var long *rpc.LongLine
		var refused []byte
		switch {
		case errors.As(err, &long):
			id, _ := json.Marshal(long.ID)
			refused = errorResponse(id, jsonrpc.CodeInvalidRequest, fmt.Sprintf("a message has at most %d bytes", maxMessage))
		case err != nil:
			return 0, err
		case len(bytes.TrimSpace(line)) == 0:
			continue
		default:
			refused = inspect(line)
		}
		if refused == nil {
			s.left = append(bytes.TrimSpace(line), '\n') // the SDK takes nothing between
		} else if len(refused) > 0 {
			if _, err := s.Write(append(refused, '\n')); err != nil {
				return 0, err
			}
		}
	}
	n := copy(p, s.left)
	s.left = s.left[n:]
	return n, nil
}

func (s *inspected) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ReadWriteCloser.Write(p)
}

// passes inspects a request's body, which is left to be read again, and answers it where it
// goes no further. The carrier has bounded it.
func passes(w http.ResponseWriter, r *http.Request) bool {
	text, err := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(text))
	if err != nil || len(text) == 0 {
		return true
	}
	refused := inspect(text)
	if refused == nil {
		return true
	}
	if len(refused) == 0 {
		w.WriteHeader(http.StatusAccepted)
		return false
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusBadRequest)
	w.Write(refused)
	return false
}
