/* The module replaydbg.native._graph: see graph.h. */
#include "graph.h"

static PyMethodDef methods[] = {
    {"strong", graph_strong, METH_VARARGS, PyDoc_STR("Return the targets of edges, weak ones turned into loops.")},
    {"tree", graph_tree, METH_VARARGS, PyDoc_STR("Return the shortest tree from the roots: parents, and edges.")},
    {"dominators", graph_dominators, METH_VARARGS, PyDoc_STR("Return immediate dominators, and the order of a walk.")},
    {"retained", graph_retained, METH_VARARGS, PyDoc_STR("Return what each node retains, and the sum of all.")},
    {"retained_by", graph_retained_by, METH_VARARGS, PyDoc_STR("Return what groups of nodes retain together.")},
    {"missing", graph_missing, METH_VARARGS, PyDoc_STR("Return which entries of a column say that there is none.")},
    {"census", graph_census, METH_VARARGS, PyDoc_STR("Return how many nodes each group has, and how many bytes.")},
    {"edges_to", graph_edges_to, METH_VARARGS, PyDoc_STR("Return the edges that lead to chosen nodes.")},
    {"origins", graph_origins, METH_VARARGS, PyDoc_STR("Return whose each node is, by the way to it.")},
    {"tops", graph_tops, METH_VARARGS, PyDoc_STR("Return the chosen nodes that no chosen node alone holds.")},
    {"translate", graph_translate, METH_VARARGS, PyDoc_STR("Return where the texts of a table stand in another.")},
    {"match", graph_match, METH_VARARGS, PyDoc_STR("Return which nodes of two snapshots are the same objects.")},
    {"match_paths", graph_match_paths, METH_VARARGS, PyDoc_STR("Return which objects of two runs are the same.")},
    {"unlike", graph_unlike, METH_VARARGS, PyDoc_STR("Return the matched nodes that are not what they were.")},
    {"degrees", graph_degrees, METH_VARARGS, PyDoc_STR("Return how many edges each node has.")},
    {"other_bits", graph_other_bits, METH_VARARGS, PyDoc_STR("Return the bits that are different in two columns.")},
    {"renumbered", graph_renumbered, METH_VARARGS, PyDoc_STR("Return a column with the numbers of a table.")},
    {"rises", graph_rises, METH_VARARGS, PyDoc_STR("Return whether the numbers of a column increase.")},
    {"highest", graph_highest, METH_VARARGS, PyDoc_STR("Return the highest number of a kind in a column.")},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "replaydbg.native._graph",
    .m_doc = PyDoc_STR("Walks over the graph of a heap snapshot, for the tool's side."),
    .m_methods = methods,
};

PyMODINIT_FUNC
PyInit__graph(void)
{
    return PyModule_Create(&definition);
}
