package mcp

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"time"

	"agentsite/agents/tools"
	"agentsite/transport/rpc"

	"github.com/go-json-experiment/json/jsontext"
)

// stateFor is how long a client may take to answer.
const stateFor = 10 * time.Minute

// exchange opens the state of a retried request (patterns/mrtr).
func (s *Server) exchange(r request, round *Round, name string, args rpc.Raw) (tools.Exchange, error) {
	can := r.meta.Capabilities
	ex := tools.Exchange{Can: tools.Capabilities{
		Elicitation: can.Elicitation != nil, Sampling: can.Sampling != nil, Roots: can.Roots != nil,
		Tasks: can.Extensions.Tasks != nil,
	}}
	if round.State != "" {
		bound, err := binding(r, name, args)
		if err != nil {
			return ex, err
		}
		state, err := s.seal.open(round.State, bound)
		if err != nil {
			return ex, malformed(rpc.CodeInvalidParams, "requestState: %v; start over without it", err)
		}
		ex.State = state
	}
	if len(round.Responses) > 0 {
		ex.Answers = make(map[string]tools.Args, len(round.Responses))
		for key, raw := range round.Responses {
			ex.Answers[key] = raw
		}
	}
	return ex, nil
}

// inputRequired asks the client, for nothing that it has not declared.
func (s *Server) inputRequired(r request, n *tools.NeedInput, name string, args rpc.Raw) (any, error) {
	out := inputRequired{Result: s.completed(), Requests: make(map[string]inputRequest, len(n.Questions))}
	out.Type = "input_required"
	if n.Elsewhere != "" {
		out.Meta.Approval = n.Elsewhere
		out.Content = []Content{{Type: "text", Text: n.Elsewhere}} // for a model whose client shows no more
		if len(n.Questions) == 0 {
			out.Requests = nil // an empty list has clients ask again at once, and give up
		}
	}
	declared := r.meta.Capabilities
	var lacks tools.Capabilities
	for _, q := range n.Questions {
		switch q.Method {
		case "elicitation/create":
			lacks.Elicitation = lacks.Elicitation || declared.Elicitation == nil
		case "sampling/createMessage":
			lacks.Sampling = lacks.Sampling || declared.Sampling == nil
		case "roots/list":
			lacks.Roots = lacks.Roots || declared.Roots == nil
		}
		out.Requests[q.Key] = inputRequest{q.Method, q.Params}
	}
	if lacks != (tools.Capabilities{}) {
		return nil, missing(lacks)
	}
	if n.State != "" {
		bound, err := binding(r, name, args)
		if err != nil {
			return nil, err
		}
		out.State = s.seal.close(n.State, bound)
	}
	return out, nil
}

// binding returns the data that a sealed state is bound to: the caller, and the exact request.
func binding(r request, name string, args rpc.Raw) ([]byte, error) {
	exact, err := canonical(args)
	if err != nil {
		return nil, err
	}
	h := sha256.New()
	for _, part := range [][]byte{[]byte(r.who.ID), []byte(r.Method), []byte(name), exact} {
		h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(part))))
		h.Write(part)
	}
	return h.Sum(nil), nil
}

// canonical is the same for the same arguments in another order of names, and
// differs where any value does, large integers included.
func canonical(args rpc.Raw) ([]byte, error) {
	if args.IsZero() {
		return nil, nil
	}
	text, err := args.JSONText()
	if err != nil {
		return nil, err
	}
	v := jsontext.Value(text).Clone()
	return v, v.Format(jsontext.CanonicalizeRawInts(false), jsontext.ReorderRawObjects(true))
}

// seal keeps a client from changing, keeping or lending the state that it carries
// for us. The key lives as long as the process: a restart asks anew. Its clock is
// the process's own, which nobody sets.
type seal struct {
	key     [32]byte
	started time.Time
}

func newSeal() seal {
	s := seal{started: time.Now()}
	rand.Read(s.key[:])
	return s
}

const sealHead = 8 + sha256.Size // when it ends, and the code over all

func (s seal) close(state string, bound []byte) string {
	b := binary.BigEndian.AppendUint64(nil, uint64(time.Since(s.started)+stateFor))
	b = append(b, s.code(b, bound, state)...)
	return base64.RawURLEncoding.EncodeToString(append(b, state...))
}

var (
	errForged = errors.New("not made by this site for this request")
	errLate   = errors.New("too late")
)

func (s seal) open(sealed string, bound []byte) (string, error) {
	b, err := base64.RawURLEncoding.DecodeString(sealed)
	if err != nil || len(b) < sealHead {
		return "", errForged
	}
	until, code, state := b[:8], b[8:sealHead], string(b[sealHead:])
	if !hmac.Equal(code, s.code(until, bound, state)) {
		return "", errForged
	}
	if uint64(time.Since(s.started)) > binary.BigEndian.Uint64(until) {
		return "", errLate
	}
	return state, nil
}

func (s seal) code(until, bound []byte, state string) []byte {
	h := hmac.New(sha256.New, s.key[:])
	h.Write(until)
	h.Write(bound)
	h.Write([]byte(state))
	return h.Sum(nil)
}
