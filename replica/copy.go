package replica

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"ovs-offline/pkg/ovsdb/file"
	"ovs-offline/replica/runtime"
	"ovs-offline/workdir"
)

// Copy makes a working copy of a database that the daemons of a runtime can serve:
// standalone, complete, and with their schema. runDir is the folder in which tools run.
// The remarks say what was repaired, left out or converted. src is not changed.
func Copy(ctx context.Context, rt runtime.Runtime, kind workdir.Kind, src, dst, runDir string) (remarks []string, err error) {
	info, found, err := file.Standalone(ctx, src, dst)
	if err != nil {
		return nil, err
	}
	if info.Name != kind.Schema() {
		return nil, fmt.Errorf("%s holds %s, not %s: collect it again with the right collect-db command", src, info.Name, kind.Schema())
	}
	for _, remark := range found {
		remarks = append(remarks, kind.Title()+" database: "+remark)
	}
	remark, err := upgrade(ctx, rt, kind, dst, runDir)
	switch {
	case ctx.Err() != nil:
		return remarks, ctx.Err()
	case err != nil: // the copy keeps its schema
		remarks = append(remarks, kind.Title()+keepsSchema+err.Error())
	case remark != "":
		remarks = append(remarks, remark)
	}
	return remarks, nil
}

// keepsSchema is in the remark about a working copy that was not converted.
const keepsSchema = " database: it keeps the recorded schema: "

// IsRefusal reports whether a remark of Copy says that a database could not be converted.
func IsRefusal(remark string) bool { return strings.Contains(remark, keepsSchema) }

// upgrade converts a working copy to the schema of the daemons that will serve it.
func upgrade(ctx context.Context, rt runtime.Runtime, kind workdir.Kind, path, runDir string) (remark string, err error) {
	schema, err := Schema(ctx, rt, kind)
	if err != nil {
		return "", err
	}
	tool := func(ctx context.Context, argv ...string) ([]byte, error) { return rt.Tool(ctx, runDir, nil, argv...) }
	return file.Upgrade(ctx, tool, path, schema)
}

// Schema returns the schema of a database that the runtime's daemons know. The error is
// the one for the first path at which packages install schemas.
func Schema(ctx context.Context, rt runtime.Runtime, kind workdir.Kind) (schema file.Schema, failed error) {
	for _, path := range schemaPaths(rt, kind) {
		text, err := rt.ReadFile(ctx, path)
		if err == nil {
			schema, err = file.ParseSchema(path, text)
		}
		if err == nil {
			return schema, nil
		}
		failed = cmp.Or(failed, err)
	}
	return file.Schema{}, failed
}
