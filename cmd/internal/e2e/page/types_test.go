//go:build e2e

package page

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"agentsite/cmd/internal/e2e/harness"
)

const sources = "../../../../transport/page"

// checkTypes has the TypeScript compiler check a folder of sources as tsconfig.json of the page says, with the
// types of the npm packages.
func checkTypes(t *testing.T, folder string) string {
	t.Helper()
	modules := harness.Need(t, "typescript", os.Getenv("NPM_MODULES"))
	settings, err := filepath.Abs(filepath.Join(sources, "tsconfig.json"))
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "tsconfig.json")
	text := `{"extends": ` + quote(settings) + `, "include": [` + quote(folder) + `],
		"compilerOptions": {"paths": {"*": [` + quote(filepath.Join(modules, "*")) + `]}}}`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	node, compiler := harness.Need(t, "Node", harness.NodeProgram), filepath.Join(modules, "typescript/bin/tsc")
	says, err := exec.Command(node, compiler, "-p", file).CombinedOutput()
	if _, failed := err.(*exec.ExitError); err != nil && !failed || failed != (len(says) > 0) {
		t.Fatalf("%v: %s", err, says)
	}
	return string(says)
}

// TestTypes: the scripts have no mistakes that their types show, and the types are those of the parts that the
// page is bundled with. A mistake is found.
func TestTypes(t *testing.T) {
	t.Parallel()
	modules := harness.Need(t, "npm packages", os.Getenv("NPM_MODULES"))
	for vendored, file := range map[string]string{
		"preact.mjs": "preact/dist/preact.mjs", "hooks.mjs": "preact/hooks/dist/hooks.mjs",
		"jsxRuntime.mjs":   "preact/jsx-runtime/dist/jsxRuntime.mjs",
		"signals.mjs":      "@preact/signals/dist/signals.mjs",
		"signals-core.mjs": "@preact/signals-core/dist/signals-core.mjs",
	} {
		ours, err := os.ReadFile(filepath.Join(sources, "vendor", vendored))
		if err != nil {
			t.Fatal(err)
		}
		if theirs, err := os.ReadFile(filepath.Join(modules, file)); err != nil || !bytes.Equal(ours, theirs) {
			t.Errorf("%s is not that of the npm package in .ci/npm/package.json: %v", vendored, err)
		}
	}
	src, err := filepath.Abs(filepath.Join(sources, "src"))
	if err != nil {
		t.Fatal(err)
	}
	if says := checkTypes(t, src); says != "" {
		t.Error(says)
	}
	wrong := t.TempDir()
	if err := os.CopyFS(wrong, os.DirFS(src)); err != nil {
		t.Fatal(err)
	}
	more := `import { t } from "./words"; export const made = <b onClick={() => t("no such word")} />;`
	if err := os.WriteFile(filepath.Join(wrong, "wrong.tsx"), []byte(more), 0o600); err != nil {
		t.Fatal(err)
	}
	if says := checkTypes(t, wrong); !strings.Contains(says, "wrong.tsx") || strings.Count(says, "error TS") != 1 {
		t.Errorf("a mistake: %s", says)
	}
}
