package adaptertest

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"agentsite/transport/rpc"
	"agentsite/transport/web"
)

// Fuzz sends requests of a known caller to the routes of an adapter, under paths that begin as
// those of the seeds. The answer to each is no failure of the site's, and what says that it is JSON
// is. A request that waits is ended. A seed is a verb, a target, a body, and the values of the header
// fields with | between them.
func Fuzz(f *testing.F, s *Site, routes []web.Route, fields []string, seeds ...[4]string) {
	h := s.Handler("site.test", routes)
	var roots []string
	for _, r := range seeds {
		f.Add(r[0], r[1], r[2], r[3])
		roots = append(roots, r[1][:strings.IndexAny(r[1][1:]+"/", "/?:")+1])
	}
	f.Fuzz(func(t *testing.T, verb, target, body, header string) {
		if strings.Trim(verb, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") != "" || strings.ContainsAny(target, " \t\r\n\x00") ||
			!slices.ContainsFunc(roots, func(root string) bool { return strings.HasPrefix(target, root) }) {
			return
		}
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		r, err := http.NewRequestWithContext(ctx, verb, "http://site.test"+target, strings.NewReader(body))
		if err != nil || verb == "" {
			return // net/http's server refuses it before any route
		}
		r.RequestURI = target
		r.Header.Set("Authorization", "Bearer "+SiteToken)
		values := strings.Split(header, "|")
		for i, name := range fields[:min(len(values), len(fields))] {
			if values[i] != "" {
				r.Header.Set(name, values[i])
			}
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		// An output whose lease ends in the same moment is unavailable.
		if w.Code >= 500 && w.Code != http.StatusServiceUnavailable && ctx.Err() == nil {
			t.Errorf("%s %s %q is answered with %d: %s", verb, target, body, w.Code, w.Body)
		}
		if !strings.HasSuffix(w.Header().Get("Content-Type"), "json") || w.Body.Len() == 0 {
			return
		}
		var answer struct {
			Error struct{ Code int }
		}
		switch bytes := w.Body.Bytes(); {
		case !json.Valid(bytes):
			t.Errorf("%s %s %q is answered with %s", verb, target, body, bytes)
		case json.Unmarshal(bytes, &answer) == nil && answer.Error.Code == rpc.CodeInternal:
			t.Errorf("%s %s %q is answered with %s", verb, target, body, bytes)
		}
	})
}
