package client

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"agentsite/agents"
	"agentsite/agents/task"
	"agentsite/node/identity"
)

// answers answers a GET with the first text, and a POST with the second.
type answers [2][]byte

func (a *answers) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Host != "hotel.example.com" || r.URL.Scheme != "https" {
		return nil, fmt.Errorf("%s is asked", r.URL)
	}
	text := a[0]
	if r.Method == http.MethodPost {
		text = a[1]
	}
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(bytes.NewReader(text)), Request: r}, nil
}

// FuzzA2AElsewhere: no card and no answer of an agent elsewhere crashes the client. A card counts
// only by its digest or the owner's key, and leads to no other host. Answers are valid tasks or
// faults.
func FuzzA2AElsewhere(f *testing.F) {
	const at = "https://hotel.example.com/rpc"
	card := func(version string) []byte { return []byte((&far{}).described(version, at)) }
	const done = `{"id":"a","status":{"state":"TASK_STATE_COMPLETED"},"artifacts":[{"parts":[{"text":"x"},{"data":{}}]}],"history":[{"messageId":"m"}]}`
	key := identity.New()
	head := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"EdDSA"}`))
	signature := base64.RawURLEncoding.EncodeToString(ed25519.Sign(key.Private(), []byte(head+"."+base64.RawURLEncoding.EncodeToString([]byte(`{"name":"a"}`)))))
	f.Add(card("1.0"), []byte(`{"jsonrpc":"2.0","id":1,"result":{"task":`+done+`}}`))
	f.Add(card("1.0"), []byte(`{"jsonrpc":"2.0","id":1,"result":{"tasks":[`+done+`]}}`))
	f.Add(card("0.3"), []byte(`{"result":{"kind":"message","parts":[{"kind":"text","text":"x"}]}}`))
	f.Add(card("0.3"), []byte(`{"result":{"kind":"task","id":"a","status":{"state":"input-required"}}}`))
	f.Add([]byte(`{"name":"a","signatures":[{"protected":"`+head+`","signature":"`+signature+`"}]}`), []byte(`{"error":{"code":-32001}}`))
	f.Add([]byte(`{"name":"a","url":"`+at+`","protocolVersion":"0.3.0","capabilities":{"extensions":[{"uri":"`+termsExtension+`","required":true}]}}`), []byte(`{}`))
	f.Fuzz(func(t *testing.T, card, answer []byte) {
		to := &answers{card, answer}
		h, err := New(Options{URL: "https://hotel.example.com/card.json", Self: identity.New().ID(), HTTP: &http.Client{Transport: to}})
		if err != nil {
			t.Fatal(err)
		}
		h.SignedBy = key.ID()
		signed := h.accepted(card) == nil
		h.SignedBy = h.Self
		if h.accepted(card) == nil {
			t.Errorf("%s counts as signed by a key that never signed", card)
		}
		h.SignedBy = identity.ID{}
		_, h.Pin, _ = strings.Cut(fmt.Sprint(h.Connect(t.Context())), "card_digest: ")
		if h.Connect(t.Context()) != nil {
			return
		}
		if signed && h.card.agent.Description != "" {
			t.Errorf("%s was not signed", card)
		}
		ask := task.Request{Agent: AgentName, Text: "x", Terms: agents.Terms{Key: new("k")}}
		for _, ask.Again = range []bool{false, true} {
			got, err := h.Ask(t.Context(), agents.Principal{}, ask)
			check(t, got, err)
		}
		got, err := h.Task(t.Context(), agents.Principal{}, "a")
		check(t, got, err)
		got, err = h.Cancel(t.Context(), agents.Principal{}, "a")
		check(t, got, err)
	})
}

func check(t *testing.T, got task.Task, err error) {
	t.Helper()
	if err == nil && (got.ID == "" || len(got.ID) > maxTaskID || got.State == task.Completed && !got.Result.IsValid()) {
		t.Errorf("%+v", got)
	}
}
