from django.http import Http404
def pool_export(request, pool_slug): raise Http404
def export_new(request, pool_slug): raise Http404
def export_file(request, export_id, filename): raise Http404
