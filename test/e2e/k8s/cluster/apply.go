package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
)

// Apply creates or changes the objects of a text in YAML. It waits until the API server
// knows their kinds.
func (c *Cluster) Apply(ctx context.Context, text []byte) error {
	objects, err := decode(text)
	if err != nil {
		return err
	}
	for _, object := range objects {
		var refused error
		err := await(ctx, func() error {
			err := c.apply(ctx, object)
			if err != nil && !meta.IsNoMatchError(err) && !apierrors.IsNotFound(err) {
				refused, err = err, nil
			}
			return err
		})
		if err = errors.Join(err, refused); err != nil {
			return fmt.Errorf("%s %s: %w", object.GetKind(), object.GetName(), err)
		}
	}
	return nil
}

// ApplyFiles applies the files that a pattern matches.
func (c *Cluster) ApplyFiles(ctx context.Context, pattern string) error {
	files, err := filepath.Glob(pattern)
	if err != nil {
		return err
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		if err := c.Apply(ctx, text); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
	}
	return nil
}

func decode(text []byte) (objects []*unstructured.Unstructured, err error) {
	for documents := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096); ; {
		object := &unstructured.Unstructured{}
		err := documents.Decode(&object.Object)
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, err
		}
		if len(object.Object) > 0 {
			objects = append(objects, object)
		}
	}
}

func (c *Cluster) apply(ctx context.Context, object *unstructured.Unstructured) error {
	resource, err := c.resource(object)
	if err != nil {
		return err
	}
	_, err = resource.Apply(ctx, object.GetName(), object, metav1.ApplyOptions{FieldManager: "test", Force: true})
	return err
}

// Delete deletes the objects of a text in YAML.
func (c *Cluster) Delete(ctx context.Context, text []byte) error {
	objects, err := decode(text)
	if err != nil {
		return err
	}
	for _, object := range objects {
		resource, err := c.resource(object)
		if err != nil {
			return err
		}
		if err := resource.Delete(ctx, object.GetName(), metav1.DeleteOptions{}); err != nil {
			return err
		}
	}
	return nil
}

// resource returns the client for an object.
func (c *Cluster) resource(object *unstructured.Unstructured) (dynamic.ResourceInterface, error) {
	kind := object.GroupVersionKind()
	mapping, err := c.kinds.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		meta.MaybeResetRESTMapper(c.kinds) // the kind may come later
		return nil, err
	}
	client, err := dynamic.NewForConfig(c.Config)
	if err != nil {
		return nil, err
	}
	if mapping.Scope.Name() == meta.RESTScopeNameRoot {
		return client.Resource(mapping.Resource), nil
	}
	return client.Resource(mapping.Resource).Namespace(object.GetNamespace()), nil
}
