/* Calls of programs that are functions of C alone: from Python and back, no step in between.

   Of CPython's stable interface what is used is declared here, as its headers may not be there;
   Python has checked that objects keep what is read of them where it is read. */

typedef void object;

long PyDict_Size(object *);
object *PyDict_GetItemWithError(object *, object *);
object *PyObject_Call(object *, object *, object *);
object *PyObject_GetItem(object *, object *);
object *PyTuple_New(long);
object *PyTuple_GetItem(object *, long);
int PyTuple_SetItem(object *, long, object *);
object *PyCFunction_NewEx(void *, object *, object *);
void *PyLong_AsVoidPtr(object *);
void *PyEval_SaveThread(void);
void PyEval_RestoreThread(void *);
void PyErr_Clear(void);
void Py_IncRef(object *);
void Py_DecRef(object *);

/* An array object. */
typedef struct {
    long references;
    void *type;
    char *data;
    int axes;
    long *extents, *strides;
    void *base, *dtype;
    int flags;
} array;
enum { ALIGNED = 0x100 };

/* What an argument has to be: an array that lies so (extents, then strides), or a number, to which
   an array is lent. */
typedef struct {
    object *name;
    void *type, *dtype;
    long axes;
    const long *lies;
    array *number;
} argument;

/* What a call makes of its function before it computes; or an array that stays, of which it makes
   the result then, by its function or (none) as a number; or an argument (-1: none) as it is, as a
   number if it has no axes, or what its function makes of it and of what is given. */
typedef struct {
    object *function, *given, *stays;
    long argument;
} result;

/* A function, and which of the objects it takes. */
typedef struct {
    int (*run)(int, char **, char **);
    char **table;
    long count;
    const long *taken;
    object **given;
} part;

/* `objects` are the arguments, the results, and arrays that stay. Calls that are left to Python are
   begun there anew: an entry of which most are, and trust is gone, is not tried any more. */
typedef struct {
    object *none, *nothing;
    long arguments, results, parts;
    const argument *argument;
    const result *result;
    const part *part;
    object **objects;
    int busy, trust;
} entry;
enum { TRUSTED = 8 };

static int fits(const argument *wanted, array *a)
{
    if (a->type != wanted->type)
        return 0;
    if (wanted->number) {
        wanted->number->data = (char *)&a->data;
        return 1;
    }
    if (a->dtype != wanted->dtype || a->axes != wanted->axes || !(a->flags & ALIGNED))
        return 0;
    for (long k = 0; k < wanted->axes; k++)
        if (a->extents[k] != wanted->lies[k] || a->strides[k] != wanted->lies[wanted->axes + k])
            return 0;
    return 1;
}

static int taken(entry *e, object *values)
{
    if (PyDict_Size(values) != e->arguments)
        return 0;
    for (long k = 0; k < e->arguments; k++) {
        const argument *wanted = &e->argument[k];
        object *found = PyDict_GetItemWithError(values, wanted->name);
        if (!found || !fits(wanted, found))
            return 0;
        e->objects[k] = wanted->number ? wanted->number : found;
    }
    return 1;
}

static int computed(entry *e)
{
    int left = 0;
    void *state = PyEval_SaveThread();
    for (long k = 0; k < e->parts && !left; k++) {
        const part *p = &e->part[k];
        for (long j = 0; j < p->count; j++)
            p->given[j] = e->objects[p->taken[j]];
        left = p->run(0, p->table, (char **)p->given);
    }
    PyEval_RestoreThread(state);
    e->trust += left ? -1 : e->trust < TRUSTED;
    return !left;
}

/* A result that is an argument, or a view of one. */
static object *lent(const entry *e, const result *r, object *a)
{
    if (!((array *)a)->axes)
        return PyObject_GetItem(a, e->nothing);
    Py_IncRef(a);
    if (!r->function)
        return a;
    object *both = PyTuple_New(2), *made = 0;
    if (!both) {
        Py_DecRef(a);
        return 0;
    }
    Py_IncRef(r->given); /* the tuple takes both references over */
    PyTuple_SetItem(both, 0, a);
    PyTuple_SetItem(both, 1, r->given);
    made = PyObject_Call(r->function, both, 0);
    Py_DecRef(both);
    return made;
}

/* A tuple of results, which holds those that are new from the start. */
static object *results(entry *e)
{
    object *found = PyTuple_New(e->results), **into = e->objects + e->arguments;
    int whole = found != 0;
    for (long k = 0; k < e->results && whole; k++) {
        const result *r = &e->result[k];
        into[k] = r->stays;
        if (r->argument >= 0) {
            into[k] = e->objects[r->argument];
            object *made = lent(e, r, into[k]);
            whole = made && !PyTuple_SetItem(found, k, made);
        } else if (!r->stays) {
            into[k] = PyObject_Call(r->function, r->given, 0);
            whole = into[k] && !PyTuple_SetItem(found, k, into[k]);
        }
    }
    whole = whole && computed(e);
    for (long k = 0; k < e->results && whole; k++)
        if (e->result[k].stays) {
            const result *r = &e->result[k];
            object *made = r->function ? PyObject_Call(r->function, r->given, 0)
                                       : PyObject_GetItem(r->stays, e->nothing);
            whole = made && !PyTuple_SetItem(found, k, made);
        }
    if (whole)
        return found;
    if (found)
        Py_DecRef(found);
    PyErr_Clear();
    return 0;
}

/* The results for arguments by name; None where Python has to see to them. */
static object *call(object *self, object *values)
{
    entry *e = PyLong_AsVoidPtr(PyTuple_GetItem(self, 0));
    object *found = 0;
    if (e->trust > 0 && !__atomic_exchange_n(&e->busy, 1, __ATOMIC_ACQUIRE)) {
        if (taken(e, values))
            found = results(e);
        __atomic_store_n(&e->busy, 0, __ATOMIC_RELEASE);
    }
    if (!found)
        Py_IncRef(found = e->none);
    return found;
}

static struct {
    const char *name;
    void *function;
    int flags;
    const char *text;
} METHOD = {"call", call, 8, 0}; /* of one argument */

/* A function of a dict; of a tuple of the entry's address and all that it points to. */
object *tcalc_entry(object *self)
{
    return PyCFunction_NewEx(&METHOD, self, 0);
}
