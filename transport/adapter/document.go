package adapter

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"strings"

	"agentsite/transport/web"

	"github.com/go-json-experiment/json"
)

// Document returns the route of a JSON document that depends on its reader. render renders the
// parts that c.Who may see; a stranger sees only that a site is there. It has an ETag, and is
// cached privately.
func (s *Site) Document(path, mediaType string, render func(ctx context.Context, c *Call) (any, error)) web.Route {
	return s.DocumentFor(web.Readers, path, mediaType, render)
}

// DocumentFor is Document for readers with that admission.
func (s *Site) DocumentFor(admission web.Admission, path, mediaType string, render func(ctx context.Context, c *Call) (any, error)) web.Route {
	return s.Route("GET "+path, admission, func(ctx context.Context, c *Call) (any, error) {
		v, err := render(ctx, c)
		if err != nil {
			return nil, err
		}
		return c.Cached(mediaType, v)
	})
}

// Cached answers with a document, or says that its reader has it.
func (c *Call) Cached(mediaType string, v any) (any, error) {
	text, err := json.Marshal(v, json.Deterministic(true))
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(text)
	tag := `"` + base64.RawURLEncoding.EncodeToString(sum[:12]) + `"`
	h := c.Writer.Header()
	h.Set("ETag", tag)
	h.Add("Vary", "Authorization, Signature-Input")
	h.Set("Cache-Control", "private, max-age=60")
	for _, have := range strings.Split(c.Request.Header.Get("If-None-Match"), ",") {
		if have = strings.TrimPrefix(strings.TrimSpace(have), "W/"); have == tag || have == "*" {
			return &Answer{Status: http.StatusNotModified}, nil
		}
	}
	return &Answer{Type: mediaType, Value: text}, nil
}
