package main

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"agentsite/cmd/internal/qr"
)

// TestConsolePage renders one site on screens of several sizes: a QR code only if it fits beside the
// readings, and never more rows than the screen has.
func TestConsolePage(t *testing.T) {
	const claim = "agentsite://z6MkpTHR8VNsBxYAAWHut2Geadd9jSwuBV8xRoAnwWsdvktH/tjywOHrC9_I_W24ce-kn1w/192.168.1.20:8474"
	picture := strings.Repeat(strings.Repeat("█", 41)+"\n", 21)
	colors := regexp.MustCompile("\x1b\\[[0-9;]*m")
	table := "POINT  VALUE\n"
	for i := range 30 {
		table += fmt.Sprintf("room/point-%d  %d\n", i, i)
	}
	s := screen{at: time.Date(2026, 11, 21, 18, 42, 50, 0, time.UTC), claim: claim, qr: picture, table: table}
	s.status.Site, s.status.Uptime = "shed", 60
	for _, tt := range []struct {
		columns, rows int
		picture, last string
	}{
		{0, 0, "█", "room/point-29  29"},
		{240, 75, "█", "room/point-29  29"},
		{100, 50, "█", "room/point-29  29"},
		{100, 30, "█", "… and "},
		{100, 27, "", "… and "},
		{71, 60, "", "room/point-29  29"},
		{40, 60, "", "room/point-29  29"}, // no room for the QR code
		{80, 25, "", "… and "},
		{20, 3, "", "… and 31 more: agen…"},
	} {
		page := colors.ReplaceAllString(s.page(tt.columns, tt.rows), "")
		rows := strings.Split(strings.TrimSuffix(page, "\n"), "\n")
		if strings.Contains(page, "█") != (tt.picture != "") || !strings.HasPrefix(rows[len(rows)-1], tt.last) {
			t.Errorf("%d×%d:\n%s", tt.columns, tt.rows, page)
		}
		if !strings.Contains(page, claim) || !strings.HasPrefix(page, "18:42:50  shed  run") || !strings.Contains(page, " 14 min,") {
			t.Errorf("%d×%d:\n%s", tt.columns, tt.rows, page)
		}
		if tt.rows > 10 && height(page, tt.columns) >= tt.rows {
			t.Errorf("%d×%d: it takes %d rows", tt.columns, tt.rows, height(page, tt.columns))
		}
		for _, row := range rows {
			row, beside, _ := strings.Cut(row, "\x1b[")
			if column, squares, ok := strings.Cut(beside, "G"); ok {
				n, err := strconv.Atoi(column)
				if err != nil || utf8.RuneCountInString(row) >= n || n-1+utf8.RuneCountInString(squares) != tt.columns {
					t.Errorf("%d×%d: %q, and %q", tt.columns, tt.rows, row, beside)
				}
			}
			if tt.columns > 0 && utf8.RuneCountInString(row) > tt.columns && !strings.Contains(row, claim) && !strings.HasPrefix(row, "This site") {
				t.Errorf("%d×%d: %q is too long", tt.columns, tt.rows, row)
			}
		}
	}
	s.status.Uptime, s.status.Stopped = 901, true
	if page := s.page(80, 25); strings.Contains(page, claim) || !strings.Contains(page, "EMERGENCY STOP") {
		t.Error(page)
	}
	s.claim = ""
	s.pages = pageAddresses([]string{"192.168.1.20:8474", "agentsite-k5qjb3xz.local:8474", "/ip4/192.0.2.1/tcp/1"})
	s.qr = qr.Draw(s.pages[0])
	page := s.page(80, 25)
	if strings.Contains(page, "owner") || len(s.pages) != 2 ||
		!strings.Contains(page, "https://agentsite-k5qjb3xz.local:8474/ ") ||
		!strings.Contains(page, strings.Split(s.qr, "\n")[3]) || strings.Count(page, "\n") != 24 {
		t.Error(page)
	}
	s.err = errors.New("a \x1b[31m word")
	if page := s.page(80, 25); strings.Contains(page, "\x1b") {
		t.Errorf("%q", page)
	}
}
