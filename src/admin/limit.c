/*
 * limit.c -- see limit.h.
 */
#include "admin/limit.h"

#include "core/view.h"

bool limit_get(const struct admin *admin, uint32_t index, struct admin_limit *ret)
{
    struct view_limit view;
    uint32_t count = 0;
    while (view_limit(admin->core, count, &view)) {
        if (count++ != index)
            continue;
        *ret = (struct admin_limit){
            .name = view.name, .option = view.option, .max = view.max, .used = view.used};
        return true;
    }
    return admin->limit != NULL && admin->limit(admin->context, index - count, ret);
}

void limit_add_status(struct writer *out, const struct admin *admin)
{
    struct admin_limit limit;
    writer_list(out, "limits");
    for (uint32_t i = 0; limit_get(admin, i, &limit); i++) {
        writer_object(out, NULL);
        writer_text(out, "resource", limit.name);
        writer_text(out, "option", limit.option);
        writer_number(out, "used", limit.used);
        writer_number(out, "limit", limit.max);
        writer_end_object(out);
    }
    writer_end_list(out);
}
